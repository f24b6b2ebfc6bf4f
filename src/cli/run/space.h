/*
 * space.h - what a program needs to share a card by space: a daemon, cards that it shows, a share of their SMs.
 */
#ifndef LOADLINE_CLI_RUN_SPACE_H
#define LOADLINE_CLI_RUN_SPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/run/args.h"
#include "mps/place.h"

struct ll_run_space {
	bool is_client;
	char pipe[LL_MPS_PATH_SIZE], log[LL_MPS_PATH_SIZE];
	char percent[16]; /* of active threads; empty: what the daemon gives everybody */
};

/*
 * Looks at the daemon that the caller's environment means and at that environment, takes cards that the daemon does not
 * show out of the list (cards was one allocation of *count), completes settings->space_permille. Fails, with a
 * sentence, where the program would not get what was asked for: no daemon (-ECONNREFUSED), a card named that clients do
 * not see
 * (-ENODEV), a share or a memory limit above what the daemon gives (-EINVAL), a server in FAULT or one that serves
 * another user's clients (-EBUSY), variables that the driver would misunderstand (-EINVAL).
 */
int ll_run_space_choose(const struct ll_driver *driver, const struct ll_run_args *args,
			struct ll_run_settings *settings, const struct ll_card **cards, size_t *count,
			struct ll_run_space *ret_space, struct ll_err *err);

#endif
