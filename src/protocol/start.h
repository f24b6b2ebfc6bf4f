/*
 * start.h - starts loadlined if nobody serves a place.
 *
 * The caller binds the name and passes the listening socket to the new process. So only one of many simultaneous
 * callers starts a daemon. The others can connect at once; the daemon accepts them as soon as it runs.
 */
#ifndef LOADLINE_PROTOCOL_START_H
#define LOADLINE_PROTOCOL_START_H

#include <sys/types.h>

#include "protocol/place.h"

struct ll_err;

struct ll_programs {
	const char *daemon, *monitor; /* absolute paths */
};

/* -EADDRINUSE: another process has bound the name; connect to it. -ECONNREFUSED: it is the system's place, whose own
 * systemd starts it. Other errors: the program could not be started. */
int ll_daemon_start(const struct ll_place *place, const struct ll_programs *programs, struct ll_err *err);

/* Connects (ll_place_connect_by), and starts a daemon if nobody serves. `run` calls it in the monitor of its job, and
 * so do commands that need a job's daemon. Of many callers one binds the name, and the others connect to its socket. */
int ll_daemon_reach(const struct ll_place *place, const struct ll_programs *programs, uint64_t until_ns, int *ret_fd,
		    uid_t *ret_uid);

/* As ll_daemon_start, with a socket that listens already. The caller keeps the socket. */
int ll_daemon_start_on(int listen_fd, const struct ll_place *place, const struct ll_programs *programs,
		       struct ll_err *err);

/*
 * Starts the monitor of a job. run_fd: a SOCK_SEQPACKET socket from which the monitor reads the job (LL_MESSAGE_JOB),
 * before it a request for a place (LL_MESSAGE_ADMIT), and after it the cards (LL_MESSAGE_BIND), one at a time. The
 * monitor asks loadlined, and the next one if that ends meanwhile, and writes the replies to it. Without a job it ends
 * when the other side closes. The caller keeps the descriptors.
 */
int ll_monitor_start(int run_fd, int lifeline_fd, int process_fd, const struct ll_place *place,
		     const struct ll_programs *programs, struct ll_err *err);

/* The descriptors in the two programs. */
enum { LL_DAEMON_LISTEN_FD = 3, LL_MONITOR_RUN_FD = 3, LL_MONITOR_LIFELINE_FD = 4, LL_MONITOR_PROCESS_FD = 5 };

#endif
