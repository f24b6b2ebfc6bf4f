/*
 * http.h - serves metrics over HTTP, asks for them, and listens at addresses.
 */
#ifndef LOADLINE_SERVE_HTTP_H
#define LOADLINE_SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct ll_err;
struct ll_http;

/* ---- listen ---- */

/*
 * Makes a listening socket from an address that a user writes.
 *
 *   127.0.0.1:9409, localhost:9409, [::1]:9409   that address
 *   :9409                                        every address of the machine, IPv4 and IPv6
 *   9409                                         this machine only (127.0.0.1)
 *   unix:/run/file.sock                          a socket file, to which everybody may connect who may enter its folder
 *
 * Port 0 lets the kernel choose one. A socket file on which nobody listens is replaced.
 */

/*
 * Resolves the address, binds and listens. The caller closes *ret_fd. -EINVAL: the address is malformed, or its host is
 * unknown. Otherwise the negative errno of bind(2), such as -EADDRINUSE or -EACCES. The error's text is "ADDR:PORT:
 * why".
 */
int ll_listen(const char *address, int *ret_fd, struct ll_err *err);

/* Returns the path of an address that begins with "unix:", else NULL. The caller removes the file when it has closed
 * the socket. */
const char *ll_listen_path(const char *address);

/* Returns the port that the socket is bound to, 0 if it has none, as a socket file. */
unsigned ll_listen_port(int fd);

/* ---- http ---- */

/*
 * Serves metrics over HTTP, for Prometheus.
 *
 *   GET /metrics   Prometheus' text format (prometheus.h)
 *   GET /healthz   200 or 503, and a text
 *
 * Other paths get 404, methods other than GET and HEAD get 405. libmicrohttpd answers in one thread of its own, which
 * receives no signals. A slow or hostile client delays only its own connection. A connection that is idle for 10 s, or
 * does not read for that long, is closed.
 */

struct ll_http_config {
	const char *address; /* as ll_listen takes it */
	/* The server's thread calls these. metrics adds the text; false: out of memory. health adds a text, and returns
	 * whether all is well. */
	bool (*metrics)(void *data, struct ll_strbuf *text);
	bool (*health)(void *data, struct ll_strbuf *text);
	void *data;
	unsigned most_connections; /* further ones wait until one of these is closed */
	uint64_t keep_ns;          /* the same text of metrics is sent again for so long, to whoever asks */
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
