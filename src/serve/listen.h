/*
 * listen.h - makes a listening socket from an address that a user writes.
 *
 *   127.0.0.1:9409, localhost:9409, [::1]:9409   that address
 *   :9409                                        every address of the machine, IPv4 and IPv6
 *   9409                                         this machine only (127.0.0.1)
 *   unix:/run/file.sock                          a socket file, to which everybody may connect who may enter its folder
 *
 * Port 0 lets the kernel choose one. A socket file on which nobody listens is replaced.
 */
#ifndef LOADLINE_SERVE_LISTEN_H
#define LOADLINE_SERVE_LISTEN_H

struct ll_err;

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

#endif
