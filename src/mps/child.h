/*
 * child.h - a program run for its output, within a time. Private to src/mps.
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
	uint64_t deadline_ns;           /* ll_now_ns; killed then */
	bool leaves_daemon; /* what it leaves running may write on: to a file then, not a pipe that breaks */
};

/*
 * Runs it, collects what it prints (standard output and error, together, at most 1 MiB) until it has ended. What it
 * leaves running in the background does not hold the call up. No descriptor of the caller but these is in it, and it
 * dies with the calling thread. *ret_status: its exit status, 128 + the signal that ended it. -ETIMEDOUT: killed at the
 * deadline, or at once where that has passed; output has what it had printed. -errno where it cannot be started.
 */
int ll_mps_child_run(const struct ll_mps_child *child, struct ll_strbuf *output, int *ret_status, struct ll_err *err);

#endif
