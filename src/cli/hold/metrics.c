#include "cli/hold/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/hold/listen.h"
#include "cli/hold/metrics_text.h"
#include "cli/hold/words.h"

enum { MAX_CONNECTIONS = 32, CONNECTION_TIMEOUT_S = 10 };

struct ll_metrics {
	struct MHD_Daemon *daemon;
	unsigned port;
	enum ll_metric metric;
	size_t count;
	pthread_mutex_t lock;
	struct ll_metrics_card *cards; /* guarded by the lock */
};

/* ---- what is known ---- */

void ll_metrics_event(struct ll_metrics *metrics, const struct ll_event *event, size_t slot)
{
	LL_SCOPE_LOCK(&metrics->lock);
	struct ll_metrics_card *card = &metrics->cards[slot];
	card->status = event->status;
	card->has_event = true;
	card->event_ns = ll_now_ns();
	if (event->kind == LL_EVENT_SUMMARY)
		card->code = event->code;
}

/* ---- answers; in the server's thread ---- */

/* Copies the cards, so that events need not wait while the text is made. NULL: out of memory. */
static struct ll_metrics_card *copy_cards(struct ll_metrics *metrics)
{
	struct ll_metrics_card *cards = calloc(metrics->count ? metrics->count : 1, sizeof *cards);
	if (!cards)
		return NULL;
	LL_SCOPE_LOCK(&metrics->lock);
	for (size_t i = 0; i < metrics->count; i++)
		cards[i] = metrics->cards[i];
	return cards;
}

/* Sends text, and frees it. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, unsigned status, const char *type,
				   struct ll_strbuf *text)
{
	size_t length = text->length;
	char *body = ll_strbuf_detach(text);
	if (!body)
		return MHD_NO;
	struct MHD_Response *response = MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(body);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result handle_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
				      const char *version, const char *upload_data, size_t *upload_data_size,
				      void **req_cls)
{
	struct ll_metrics *metrics = cls;
	(void)version, (void)upload_data, (void)upload_data_size, (void)req_cls;
	static const char plain[] = "text/plain; charset=utf-8";
	struct ll_strbuf text = LL_STRBUF_INIT; /* send_send_answer() frees it */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		ll_strbuf_adds(&text, "only GET and HEAD\n");
		return send_answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain, &text);
	}
	LL_SCOPE_FREE struct ll_metrics_card *cards = copy_cards(metrics);
	if (!cards)
		return MHD_NO; /* closes the connection */
	if (strcmp(url, "/metrics") == 0) {
		ll_metrics_text(&text, metrics->metric, cards, metrics->count);
		return send_answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &text);
	}
	if (strcmp(url, "/healthz") == 0) {
		bool is_ok = ll_metrics_health(&text, cards, metrics->count, ll_now_ns());
		return send_answer(connection, is_ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, plain, &text);
	}
	ll_strbuf_adds(&text, "there are /metrics and /healthz\n");
	return send_answer(connection, MHD_HTTP_NOT_FOUND, plain, &text);
}

/* ---- coming and going ---- */

/* All signals are blocked while the server's thread starts, so that the main thread receives them: a new thread
 * inherits the mask. */
static struct MHD_Daemon *start_daemon(struct ll_metrics *metrics, int fd)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	struct MHD_Daemon *daemon =
	    MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle_request, metrics,
			     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
			     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

static int serve_metrics(struct ll_metrics *metrics, const char *address, struct ll_err *err)
{
	int fd;
	int rc = ll_listen(address, &fd, err);
	if (rc < 0) {
		ll_err_wrap(err, "metrics");
		return rc;
	}
	metrics->port = ll_listen_port(fd);
	errno = 0;
	metrics->daemon = start_daemon(metrics, fd); /* takes over fd, also when it fails */
	if (!metrics->daemon)
		return ll_err_set(err, errno ? -errno : -EIO, "metrics: %s: the server does not start", address);
	return 0;
}

int ll_metrics_new(const char *address, enum ll_metric metric, const struct ll_card *const *cards, size_t count,
		   struct ll_metrics **ret_metrics, struct ll_err *err)
{
	struct ll_metrics *metrics = calloc(1, sizeof *metrics);
	struct ll_metrics_card *states = calloc(count ? count : 1, sizeof *states);
	if (!metrics || !states) {
		free(metrics);
		free(states);
		return ll_err_set(err, -ENOMEM, "metrics: out of memory");
	}
	for (size_t i = 0; i < count; i++)
		states[i] = (struct ll_metrics_card){
		    .card = cards[i], .is_simulated = ll_hold_is_simulated(cards[i]), .event_ns = ll_now_ns()};
	metrics->metric = metric;
	metrics->cards = states;
	metrics->count = count;
	pthread_mutex_init(&metrics->lock, NULL);
	int rc = serve_metrics(metrics, address, err);
	if (rc < 0) {
		ll_metrics_free(metrics);
		return rc;
	}
	*ret_metrics = metrics;
	return 0;
}

unsigned ll_metrics_port(const struct ll_metrics *metrics)
{
	return metrics->port;
}

void ll_metrics_free(struct ll_metrics *metrics)
{
	if (!metrics)
		return;
	if (metrics->daemon)
		MHD_stop_daemon(metrics->daemon);
	pthread_mutex_destroy(&metrics->lock);
	free(metrics->cards);
	free(metrics);
}
