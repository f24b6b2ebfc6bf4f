/*
 * request.h - what evict, suspend and resume have in common: they find the programs that the operand means, choose an
 * evictor for each (evictor.h), and print how it went.
 */
#ifndef LOADLINE_CLI_EVICT_REQUEST_H
#define LOADLINE_CLI_EVICT_REQUEST_H

#include "cli/options/command.h"

struct ll_evict_args {
	uint64_t wait_ns; /* --timeout; 0: not given */
	bool json;
	uint64_t pid;       /* 0: not given */
	const char *reason; /* for the log; NULL: not given */
};

extern const struct ll_option ll_evict_options[], ll_resume_options[];

enum ll_evict_kind { LL_EVICT, LL_SUSPEND, LL_RESUME };

/*
 * Does so with each program that the operand means: "0/17" is one process, the name of a tenant all of its processes on
 * all cards; --pid any process of this user. Waits for the end of each move, and prints a line for each. The program
 * does it itself if it is evictable, else the driver's checkpoint. Goes on after a failure, and returns the first.
 * -ENOENT: there is no such program; -EBUSY: one cannot be moved now, err says why; -ESRCH: it has ended; -ECANCELED:
 * another command has asked for something else meanwhile.
 */
int ll_evict_request(const struct ll_evict_args *args, const struct ll_operands *operands, enum ll_evict_kind kind,
		     struct ll_err *err);

#endif
