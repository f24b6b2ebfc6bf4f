/*
 * child.h - runs a program for its output, with a deadline. Private to src/mps.
 */
#ifndef LOADLINE_MPS_CHILD_H
#define LOADLINE_MPS_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct ll_err;

struct ll_mps_child {
	const char *const *words;       /* path first, NULL-ended */
	const char *const *environment; /* NULL-ended; NULL: the caller's */
	const char *input;              /* its standard input: at most 4096 bytes; NULL: empty */
	uint64_t deadline_ns;           /* ll_now_ns; at this time the program is killed */
	bool leaves_daemon; /* the program leaves a process running that writes on: its output goes to a file, not to a
			       pipe that would break */
};

/*
 * Runs the program until it has ended, and collects what it prints (standard output and error together, at most 1 MiB).
 * A process that it leaves running does not hold the call up. The program has no other descriptors of the caller, and
 * dies with the calling thread. *ret_status: its exit status, or 128 + the signal that ended it. -ETIMEDOUT: it was
 * killed at the deadline, or at once if the deadline had passed; output has what it had printed. Another -errno: it
 * could not be started.
 */
int ll_mps_child_run(const struct ll_mps_child *child, struct ll_strbuf *output, int *ret_status, struct ll_err *err);

#endif
