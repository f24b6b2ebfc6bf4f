/*
 * listen.h - a listening TCP socket from what a user writes.
 *
 *   127.0.0.1:9400, localhost:9400, [::1]:9400   that address
 *   :9400                                        every address of the machine, IPv4 and IPv6
 *   9400                                         this machine only (127.0.0.1)
 *
 * Port 0 lets the kernel choose one.
 */
#ifndef LOADLINE_CLI_HOLD_LISTEN_H
#define LOADLINE_CLI_HOLD_LISTEN_H

struct ll_err;

/*
 * Resolves, binds and listens; *ret_fd is the caller's to close. -EINVAL: malformed, or a host nobody knows. Otherwise
 * the errno of bind(2), such as -EADDRINUSE, -EACCES. The text is "ADDR:PORT: why".
 */
int ll_listen(const char *address, int *ret_fd, struct ll_err *err);

/* The port a socket is bound to, 0 when it has none. */
unsigned ll_listen_port(int fd);

#endif
