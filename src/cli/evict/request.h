/*
 * request.h - what evict, suspend and resume have in common: they ask the mover of a card for a move of a program, and
 * print how it went.
 */
#ifndef LOADLINE_CLI_EVICT_REQUEST_H
#define LOADLINE_CLI_EVICT_REQUEST_H

#include "cli/options/command.h"
#include "mover/protocol.h"

struct ll_evict_args {
	bool json;
};

extern const struct ll_option ll_evict_options[];

/*
 * Asks for that move of each program that the operand means: "0/17" is one process, the name of a tenant all of its
 * processes on all cards. Waits for the end of each move, and prints a line for each. done: the word for it, such as
 * "evicted". -ENOENT: there is no such program; -EBUSY: one cannot be moved now, err says why.
 */
int ll_evict_request(const struct ll_evict_args *args, const struct ll_operands *operands, enum ll_mover_kind kind,
		     const char *done, struct ll_err *err);

#endif
