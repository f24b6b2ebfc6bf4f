#include "serve/http.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "serve/http_library.h"
#include "serve/listen.h"
#include "serve/prometheus.h"

/* A request of Prometheus has some 300 bytes. */
enum { CONNECTION_TIMEOUT_S = 10, CONNECTION_BYTES = 8192 };

/* The last text of a path, which all connections share. */
struct kept_text {
	struct MHD_Response *response; /* NULL: none */
	unsigned status;
	uint64_t at_ns;
};

struct ll_http {
	struct ll_http_config config;
	char *address;
	struct MHD_Daemon *daemon;
	unsigned port;
	struct kept_text metrics, health; /* of the server's thread */
};

static const struct ll_microhttpd *mhd; /* set before the first server starts */

static const char plain[] = "text/plain; charset=utf-8";

/* Makes a response of the text, and frees it. NULL: out of memory. */
static struct MHD_Response *make_response(const char *type, struct ll_strbuf *text)
{
	size_t length = text->length;
	char *body = ll_strbuf_detach(text);
	if (!body)
		return NULL;
	struct MHD_Response *response = mhd->MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(body);
		return NULL;
	}
	mhd->MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return response;
}

/* Sends text, and frees it. MHD_NO closes the connection. */
static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status, struct ll_strbuf *text)
{
	struct MHD_Response *response = make_response(plain, text);
	if (!response)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		mhd->MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	enum MHD_Result result = mhd->MHD_queue_response(connection, status, response);
	mhd->MHD_destroy_response(response);
	return result;
}

static void forget_kept(struct kept_text *kept)
{
	if (kept->response)
		mhd->MHD_destroy_response(kept->response); /* connections that send it have it still */
	kept->response = NULL;
}

static bool is_fresh(const struct ll_http *http, const struct kept_text *kept)
{
	return kept->response && ll_now_ns() - kept->at_ns < http->config.keep_ns;
}

static enum MHD_Result send_kept(struct MHD_Connection *connection, struct kept_text *kept)
{
	return kept->response ? mhd->MHD_queue_response(connection, kept->status, kept->response) : MHD_NO;
}

static enum MHD_Result send_metrics(struct ll_http *http, struct MHD_Connection *connection)
{
	if (!is_fresh(http, &http->metrics)) {
		struct ll_strbuf text = LL_STRBUF_INIT; /* make_response frees it */
		forget_kept(&http->metrics);
		if (http->config.metrics(http->config.data, &text))
			http->metrics.response = make_response(LL_PROMETHEUS_TYPE, &text);
		ll_strbuf_fini(&text);
		http->metrics.status = MHD_HTTP_OK;
		http->metrics.at_ns = ll_now_ns();
	}
	return send_kept(connection, &http->metrics);
}

static enum MHD_Result send_health(struct ll_http *http, struct MHD_Connection *connection)
{
	if (!is_fresh(http, &http->health)) {
		struct ll_strbuf text = LL_STRBUF_INIT; /* make_response frees it */
		forget_kept(&http->health);
		bool is_ok = http->config.health(http->config.data, &text);
		http->health.response = make_response(plain, &text);
		http->health.status = is_ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
		http->health.at_ns = ll_now_ns();
	}
	return send_kept(connection, &http->health);
}

static enum MHD_Result handle_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
				      const char *version, const char *upload_data, size_t *upload_data_size,
				      void **req_cls)
{
	struct ll_http *http = cls;
	(void)version, (void)upload_data, (void)upload_data_size, (void)req_cls;
	struct ll_strbuf text = LL_STRBUF_INIT; /* send_text frees it */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		ll_strbuf_adds(&text, "only GET and HEAD\n");
		return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, &text);
	}
	if (strcmp(url, "/metrics") == 0)
		return send_metrics(http, connection);
	if (strcmp(url, "/healthz") == 0)
		return send_health(http, connection);
	ll_strbuf_adds(&text, "there are /metrics and /healthz\n");
	return send_text(connection, MHD_HTTP_NOT_FOUND, &text);
}

/* ---- start and end ---- */

/* All signals are blocked while the server's thread starts, so that the main thread receives them: a new thread
 * inherits the mask. */
static struct MHD_Daemon *start_daemon(struct ll_http *http, int fd)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	struct MHD_Daemon *daemon = mhd->MHD_start_daemon(
	    MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle_request, http, MHD_OPTION_LISTEN_SOCKET,
	    fd, MHD_OPTION_CONNECTION_LIMIT, http->config.most_connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

static int start_server(struct ll_http *http, struct ll_err *err)
{
	int fd;
	int rc = ll_microhttpd_open(&mhd, err);
	if (!rc)
		rc = ll_listen(http->address, &fd, err);
	if (rc < 0) {
		ll_err_wrap(err, "metrics");
		return rc;
	}
	http->port = ll_listen_port(fd);
	errno = 0;
	http->daemon = start_daemon(http, fd); /* takes over fd, also when it fails */
	if (!http->daemon)
		return ll_err_set(err, errno ? -errno : -EIO, "metrics: %s: the server does not start", http->address);
	return 0;
}

int ll_http_new(const struct ll_http_config *config, struct ll_http **ret_http, struct ll_err *err)
{
	struct ll_http *http = calloc(1, sizeof *http);
	char *address = strdup(config->address);
	if (!http || !address) {
		free(http);
		free(address);
		return ll_err_set(err, -ENOMEM, "metrics: out of memory");
	}
	http->config = *config;
	http->config.address = http->address = address;
	int rc = start_server(http, err);
	if (rc < 0) {
		ll_http_free(http);
		return rc;
	}
	*ret_http = http;
	return 0;
}

unsigned ll_http_port(const struct ll_http *http)
{
	return http->port;
}

void ll_http_free(struct ll_http *http)
{
	if (!http)
		return;
	const char *path = ll_listen_path(http->address);
	if (http->daemon && path)
		unlink(path);
	if (http->daemon)
		mhd->MHD_stop_daemon(http->daemon);
	forget_kept(&http->metrics);
	forget_kept(&http->health);
	free(http->address);
	free(http);
}
