/*
 * start.h - starts loadlined where nobody serves a place.
 *
 * The caller binds the name and gives the listening socket to the new process. So of many callers at once one starts a
 * daemon, and the others may connect at once: they are served as soon as it runs.
 */
#ifndef LOADLINE_PROTOCOL_START_H
#define LOADLINE_PROTOCOL_START_H

#include <sys/types.h>

#include "protocol/place.h"

struct ll_err;

struct ll_programs {
	const char *daemon, *monitor; /* absolute paths */
};

/* -EADDRINUSE: somebody has the name; connect. -ECONNREFUSED: it is the system's place, which its own keeper serves.
 * Other errors: the program could not be started. */
int ll_daemon_start(const struct ll_place *place, const struct ll_programs *programs, struct ll_err *err);

/* Connects (ll_place_connect), and starts a daemon if nobody serves: `run` by the monitor of its job, and commands that
 * ask something of a job. Of many callers one can bind the name, and the others connect to the socket that it made. */
int ll_daemon_reach(const struct ll_place *place, const struct ll_programs *programs, int *ret_fd, uid_t *ret_uid);

/* The same as ll_daemon_start, with a socket that listens already. It stays the caller's. */
int ll_daemon_start_on(int listen_fd, const struct ll_place *place, const struct ll_programs *programs,
		       struct ll_err *err);

/*
 * Starts the monitor of a job. report_fd: a SOCK_SEQPACKET socket on which it finds the job (LL_MESSAGE_JOB), and on
 * which it tells how the registration went (LL_MESSAGE_ACCEPTED, LL_MESSAGE_REFUSED), once. The descriptors stay the
 * caller's.
 */
int ll_monitor_start(int report_fd, int lifeline_fd, int process_fd, const struct ll_place *place,
		     const struct ll_programs *programs, struct ll_err *err);

/* The descriptors in the two programs. */
enum { LL_DAEMON_LISTEN_FD = 3, LL_MONITOR_REPORT_FD = 3, LL_MONITOR_LIFELINE_FD = 4, LL_MONITOR_PROCESS_FD = 5 };

#endif
