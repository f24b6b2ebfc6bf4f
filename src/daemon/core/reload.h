/*
 * reload.h - reads the configuration again at SIGHUP. A thread reads the files, because a disk can hang.
 */
#ifndef LOADLINE_DAEMON_CORE_RELOAD_H
#define LOADLINE_DAEMON_CORE_RELOAD_H

struct ll_err;
struct ll_server;

/* Reads the configuration now, before the loop runs, and again at each SIGHUP from then on. -EINVAL: it has faults.
 * -ENOMEM. */
int ll_reload_init(struct ll_server *server, const char *path, struct ll_err *err);

/* Stops it. The caller lets the loop run until it is empty, and then calls ll_reload_fini, which frees the
 * configuration. */
void ll_reload_stop(struct ll_server *server);
void ll_reload_fini(struct ll_server *server);

#endif
