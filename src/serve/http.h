/*
 * http.h - serves metrics over HTTP, for Prometheus.
 *
 *   GET /metrics   Prometheus' text format (prometheus.h)
 *   GET /healthz   200 or 503, and a text
 *
 * Other paths get 404, methods other than GET and HEAD get 405. libmicrohttpd answers in one thread of its own, which
 * receives no signals. A slow or hostile client delays only its own connection. A connection that is idle for 10 s, or
 * does not read for that long, is closed.
 */
#ifndef LOADLINE_SERVE_HTTP_H
#define LOADLINE_SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct ll_err;
struct ll_http;

struct ll_http_config {
	const char *address; /* listen.h */
	/* The server's thread calls these. metrics adds the text; false: out of memory. health adds a text, and returns
	 * whether all is well. */
	bool (*metrics)(void *data, struct ll_strbuf *text);
	bool (*health)(void *data, struct ll_strbuf *text);
	void *data;
	unsigned most_connections; /* further ones wait until one of these is closed */
	uint64_t keep_ns;          /* the same text of a path is sent again for so long, to whoever asks */
};

/* Listens and starts the server. The texts of the configuration are copied. Errors are those of ll_listen, with
 * "metrics: " in front. */
int ll_http_new(const struct ll_http_config *config, struct ll_http **ret_http, struct ll_err *err);

/* The TCP port; 0: it is a socket file. */
unsigned ll_http_port(const struct ll_http *http);

/* Closes the socket and all connections, removes a socket file, and frees http, which may be NULL. */
void ll_http_free(struct ll_http *http);

/*
 * Asks a server at that address for the path (GET), for at most a second. Returns the status of HTTP, such as 200.
 * -ECONNREFUSED, -ETIMEDOUT, …: nobody replies. -EPROTO: what replies does not speak HTTP. -EINVAL: the address is
 * malformed.
 */
int ll_http_ask(const char *address, const char *path, struct ll_err *err);

#endif
