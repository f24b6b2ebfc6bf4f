/*
 * space.h - prepares a program that shares a card by space: finds the daemon, the cards that it shows, and the share of
 * their SMs.
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
	char percent[16]; /* percentage of active threads; empty: the daemon's share for each client */
};

/*
 * Reads the state of the daemon that the caller's environment leads to; with --by space one is started where none runs
 * and the environment names none. Removes cards that the daemon does not show
 * from cards, and reduces *count. Completes settings->space_permille. Fails if the program would not get what the user
 * asked for; the error's text says why:
 *
 *   -ECONNREFUSED   no daemon
 *   -ENODEV         the user named a card that clients do not see
 *   -EINVAL         a share or a memory limit is more than the daemon gives; the driver would misunderstand a variable
 *   -EBUSY          the server is in FAULT, or serves another user's clients
 */
int ll_run_space_choose(const struct ll_driver *driver, const struct ll_run_args *args,
			struct ll_run_settings *settings, const struct ll_card **cards, size_t *count,
			struct ll_run_space *ret_space, struct ll_err *err);

#endif
