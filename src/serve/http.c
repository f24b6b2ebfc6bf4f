#include "serve/http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "serve/prometheus.h"

/* ---- listen ---- */

enum { BACKLOG = 32 };

struct endpoint {
	char host[256]; /* empty: every address */
	char port[8];
};

/* Reads the host, which is the text up to end. An IPv6 address is in brackets. */
static int parse_host(const char *address, const char *end, struct endpoint *endpoint, struct ll_err *err)
{
	const char *host = address;
	size_t length = (size_t)(end - address);
	if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	} else if (memchr(host, ':', length)) {
		return ll_err_set(err, -EINVAL, "'%s': an IPv6 address goes in brackets: [::1]:9409", address);
	}
	if (length >= sizeof endpoint->host || memchr(host, '[', length) || memchr(host, ']', length) ||
	    (host != address && length == 0))
		return ll_err_set(err, -EINVAL, "'%s': not ADDR:PORT", address);
	memcpy(endpoint->host, host, length);
	endpoint->host[length] = '\0';
	return 0;
}

static int parse_endpoint(const char *address, struct endpoint *endpoint, struct ll_err *err)
{
	const char *colon = strrchr(address, ':');
	const char *port = colon ? colon + 1 : address;
	uint64_t number;
	if (!port[0] || ll_parse_uint(port, 0, 65535, &number, NULL) < 0)
		return ll_err_set(err, -EINVAL, "'%s': not ADDR:PORT with a port of 0 to 65535", address);
	snprintf(endpoint->port, sizeof endpoint->port, "%u", (unsigned)number);
	if (colon)
		return parse_host(address, colon, endpoint, err);
	snprintf(endpoint->host, sizeof endpoint->host, "127.0.0.1");
	return 0;
}

/* Returns a listening socket, or -errno. */
static int listen_on(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int on = 1;
	int off = 0;
	/* With SO_REUSEADDR a restart need not wait for old connections in TIME_WAIT. On Linux it does not allow a
	 * second listener. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (info->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int code = -errno;
	close(fd);
	return code;
}

/*
 * Listens on the first address that this machine has. A port in use ends the search: "localhost" must not become ::1
 * because another program has 127.0.0.1. For "every address" it takes the any-address of IPv6, which accepts IPv4 too,
 * or that of IPv4 on a machine without IPv6.
 */
static int listen_first(const struct addrinfo *infos, bool wants_ipv6_first)
{
	int rc = -EADDRNOTAVAIL;
	for (int pass = wants_ipv6_first ? 0 : 1; pass < 2; pass++) {
		for (const struct addrinfo *info = infos; info; info = info->ai_next) {
			if (pass == 0 && info->ai_family != AF_INET6)
				continue;
			rc = listen_on(info);
			if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
				return rc;
		}
	}
	return rc;
}

/* ---- socket files ---- */

const char *ll_listen_path(const char *address)
{
	static const char mark[] = "unix:";
	return strncmp(address, mark, strlen(mark)) == 0 ? address + strlen(mark) : NULL;
}

/* False: the path is too long. */
static bool name_place(const char *path, struct sockaddr_un *ret_place)
{
	*ret_place = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof ret_place->sun_path)
		return false;
	memcpy(ret_place->sun_path, path, strlen(path) + 1);
	return true;
}

/* Removes a socket on which nobody listens any more. Other files stay, and bind then fails. */
static void remove_left(const struct sockaddr_un *place)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (lstat(place->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)place, sizeof *place) != 0 && errno == ECONNREFUSED)
		unlink(place->sun_path);
	close(fd);
}

/* Everybody may connect: who may not is kept out by the folder. */
static int bind_path(int fd, const struct sockaddr_un *place)
{
	if (bind(fd, (const struct sockaddr *)place, sizeof *place) != 0)
		return -errno;
	if (chmod(place->sun_path, 0666) == 0 && listen(fd, BACKLOG) == 0)
		return 0;
	int code = -errno;
	unlink(place->sun_path);
	return code;
}

static int listen_at_path(const char *address, const char *path, int *ret_fd, struct ll_err *err)
{
	struct sockaddr_un place;
	if (path[0] != '/' || !name_place(path, &place))
		return ll_err_set(err, -EINVAL, "'%s': not a path from / on of at most %zu bytes", address,
				  sizeof place.sun_path - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = fd < 0 ? -errno : 0;
	if (!rc) {
		remove_left(&place);
		rc = bind_path(fd, &place);
	}
	if (!rc) {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return ll_err_set(err, rc, "%s: %s", address, strerror(-rc));
}

int ll_listen(const char *address, int *ret_fd, struct ll_err *err)
{
	const char *path = ll_listen_path(address);
	if (path)
		return listen_at_path(address, path, ret_fd, err);
	struct endpoint endpoint = {0};
	int rc = parse_endpoint(address, &endpoint, err);
	if (rc < 0)
		return rc;
	bool is_any = !endpoint.host[0];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *infos = NULL;
	int gai = getaddrinfo(is_any ? NULL : endpoint.host, endpoint.port, &hints, &infos);
	if (gai != 0)
		return ll_err_set(err, -EINVAL, "'%s': %s", address, gai_strerror(gai));
	rc = listen_first(infos, is_any);
	freeaddrinfo(infos);
	if (rc == -EADDRINUSE) {
		ll_err_set(err, rc, "%s: address already in use", address);
		ll_err_hint(err, "another program listens there: choose another port");
		return rc;
	}
	if (rc < 0)
		return ll_err_set(err, rc, "%s: %s", address, strerror(-rc));
	*ret_fd = rc;
	return 0;
}

unsigned ll_listen_port(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return 0;
	if (address.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
	return address.ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)&address)->sin_port) : 0;
}

/* ---- the library ---- */

/*
 * libmicrohttpd is opened when a server starts. It brings GnuTLS and ten further libraries with it. `loadline run`
 * becomes the user's command with none of them loaded: under a preloaded AddressSanitizer they hang before main, and
 * each start would take longer.
 */
#define LL_MICROHTTPD_FUNCTIONS(FUNCTION)                                                                              \
	FUNCTION(MHD_start_daemon)                                                                                     \
	FUNCTION(MHD_stop_daemon)                                                                                      \
	FUNCTION(MHD_create_response_from_buffer)                                                                      \
	FUNCTION(MHD_add_response_header)                                                                              \
	FUNCTION(MHD_queue_response)                                                                                   \
	FUNCTION(MHD_destroy_response)

#define LL_MICROHTTPD_MEMBER(symbol) __typeof__(&(symbol)) symbol;

struct ll_microhttpd {
	LL_MICROHTTPD_FUNCTIONS(LL_MICROHTTPD_MEMBER)
};

/* The name of the library since 2014. */
#define LIBRARY "libmicrohttpd.so.12"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_microhttpd mhd;
static struct ll_err failure; /* of open_library; code 0: mhd has the functions, until the program ends */

static void open_library(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		ll_err_set(&failure, -ENOENT, "%s", dlerror());
		ll_err_hint(&failure, "install libmicrohttpd");
		return;
	}
#define FIND(symbol)                                                                                                   \
	do {                                                                                                           \
		void *address = dlsym(library, #symbol);                                                               \
		memcpy(&mhd.symbol, &address, sizeof address);                                                         \
		if (!address)                                                                                          \
			ll_err_set(&failure, -ENOENT, "%s is missing", #symbol);                                       \
	} while (0);
	LL_MICROHTTPD_FUNCTIONS(FIND)
}

/* ---- the server ---- */

/* A request of Prometheus has some 300 bytes. */
enum { CONNECTION_TIMEOUT_S = 10, CONNECTION_BYTES = 8192 };

struct ll_http {
	struct ll_http_config config;
	char *address;
	struct MHD_Daemon *daemon;
	unsigned port;
	/* of the server's thread: the last metrics, which all connections share; NULL: none */
	struct MHD_Response *kept;
	uint64_t kept_at_ns;
};

static const char plain[] = "text/plain; charset=utf-8";

/* Makes a response of the text, and frees it. NULL: out of memory. */
static struct MHD_Response *make_response(const char *type, struct ll_strbuf *text)
{
	size_t length = text->length;
	char *body = ll_strbuf_detach(text);
	if (!body)
		return NULL;
	struct MHD_Response *response = mhd.MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(body);
		return NULL;
	}
	mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return response;
}

/* Frees the text. */
static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status, struct ll_strbuf *text)
{
	struct MHD_Response *response = make_response(plain, text);
	if (!response)
		return MHD_NO; /* closes the connection */
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	enum MHD_Result result = mhd.MHD_queue_response(connection, status, response);
	mhd.MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse_request(struct MHD_Connection *connection, unsigned status, const char *why)
{
	struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_adds(&text, why);
	return send_text(connection, status, &text);
}

static void forget_kept(struct ll_http *http)
{
	if (http->kept)
		mhd.MHD_destroy_response(http->kept); /* connections that send it have it still */
	http->kept = NULL;
}

static enum MHD_Result send_metrics(struct ll_http *http, struct MHD_Connection *connection)
{
	const struct ll_http_config *config = &http->config;
	if (!http->kept || ll_now_ns() - http->kept_at_ns >= config->keep_ns) {
		struct ll_strbuf text = LL_STRBUF_INIT; /* make_response frees it */
		forget_kept(http);
		if (config->metrics(config->data, &text))
			http->kept = make_response(LL_PROMETHEUS_TYPE, &text);
		ll_strbuf_fini(&text);
		http->kept_at_ns = ll_now_ns();
	}
	return http->kept ? mhd.MHD_queue_response(connection, MHD_HTTP_OK, http->kept) : MHD_NO;
}

static enum MHD_Result send_health(struct ll_http *http, struct MHD_Connection *connection)
{
	struct ll_strbuf text = LL_STRBUF_INIT;
	bool is_ok = http->config.health(http->config.data, &text);
	return send_text(connection, is_ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, &text);
}

static enum MHD_Result handle_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
				      const char *version, const char *upload_data, size_t *upload_data_size,
				      void **req_cls)
{
	struct ll_http *http = cls;
	(void)version, (void)upload_data, (void)upload_data_size, (void)req_cls;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse_request(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (strcmp(url, "/metrics") == 0)
		return send_metrics(http, connection);
	if (strcmp(url, "/healthz") == 0)
		return send_health(http, connection);
	return refuse_request(connection, MHD_HTTP_NOT_FOUND, "there are /metrics and /healthz\n");
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
	struct MHD_Daemon *daemon = mhd.MHD_start_daemon(
	    MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle_request, http, MHD_OPTION_LISTEN_SOCKET,
	    fd, MHD_OPTION_CONNECTION_LIMIT, http->config.most_connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

static int start_server(struct ll_http *http, struct ll_err *err)
{
	int fd = -1;
	pthread_once(&once, open_library);
	if (failure.code && err)
		*err = failure;
	int rc = failure.code ? failure.code : ll_listen(http->address, &fd, err);
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
		mhd.MHD_stop_daemon(http->daemon);
	forget_kept(http);
	free(http->address);
	free(http);
}

/* ---- http ask ---- */

enum { REPLY_SIZE = 64, REQUEST_SIZE = 256, HTTP_LEAST = 100, HTTP_MOST = 599 };

/* Each call of the socket takes at most a second. Returns the socket, or -errno. */
static int connect_to(int family, const struct sockaddr *place, socklen_t length)
{
	struct timeval second = {.tv_sec = 1};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
	if (connect(fd, place, length) == 0)
		return fd;
	int code = errno == EINPROGRESS || errno == EAGAIN ? -ETIMEDOUT : -errno;
	close(fd);
	return code;
}

static int connect_to_path(const char *path)
{
	struct sockaddr_un place;
	if (!name_place(path, &place))
		return -EINVAL;
	return connect_to(AF_UNIX, (const struct sockaddr *)&place, sizeof place);
}

/* An address without a host is reached on this machine. */
static int connect_to_port(const char *address)
{
	struct endpoint endpoint = {0};
	if (parse_endpoint(address, &endpoint, NULL) < 0)
		return -EINVAL;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *infos = NULL;
	if (getaddrinfo(endpoint.host[0] ? endpoint.host : "127.0.0.1", endpoint.port, &hints, &infos) != 0)
		return -EINVAL;
	int rc = -EADDRNOTAVAIL;
	for (const struct addrinfo *info = infos; info && rc < 0; info = info->ai_next)
		rc = connect_to(info->ai_family, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(infos);
	return rc;
}

/* Returns the status, or a negative errno. */
static int exchange_words(int fd, const char *path)
{
	char request[REQUEST_SIZE], reply[REPLY_SIZE];
	int length =
	    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	if (length < 0 || (size_t)length >= sizeof request)
		return -EINVAL;
	if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
		return -EIO;
	ssize_t count = recv(fd, reply, sizeof reply - 1, MSG_WAITALL);
	if (count < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -ETIMEDOUT : -errno;
	reply[count] = '\0';
	static const char http[] = "HTTP/1.";
	if (strncmp(reply, http, strlen(http)) != 0)
		return -EPROTO;
	const char *space = strchr(reply, ' ');
	long status = space ? strtol(space, NULL, 10) : 0;
	return status >= HTTP_LEAST && status <= HTTP_MOST ? (int)status : -EPROTO;
}

int ll_http_ask(const char *address, const char *path, struct ll_err *err)
{
	const char *file = ll_listen_path(address);
	int fd = file ? connect_to_path(file) : connect_to_port(address);
	int rc = fd < 0 ? fd : exchange_words(fd, path);
	if (fd >= 0)
		close(fd);
	return rc < 0 ? ll_err_set(err, rc, "%s: %s", address, strerror(-rc)) : rc;
}
