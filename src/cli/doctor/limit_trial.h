/*
 * limit_trial.h - a governed program that tries to exceed its limits: what `loadline doctor` starts to see that they
 * hold.
 *
 * It is this program once more, with the word below and the environment of a tenant with LL_TRIAL_MEMORY_BYTES of
 * memory, contexts not counted, and LL_TRIAL_CAP_PERMILLE of time. It reaches the driver as any program does (dlopen,
 * dlsym), so that what it meets others meet too. It prints a line for each limit, "memory REFUSED_BYTES" or "memory 0",
 * and "compute PERMILLE"; what fails before that is an error as of any command.
 */
#ifndef LOADLINE_CLI_DOCTOR_LIMIT_TRIAL_H
#define LOADLINE_CLI_DOCTOR_LIMIT_TRIAL_H

#include <stdbool.h>

struct ll_err;

#define LL_TRIAL_WORD "limit-trial"

enum {
	LL_TRIAL_MEMORY_BYTES = 64 << 20,
	LL_TRIAL_FIRST_BYTES = 16 << 20,  /* within the limit */
	LL_TRIAL_SECOND_BYTES = 64 << 20, /* past it with the first */
	LL_TRIAL_CAP_PERMILLE = 250,
	LL_TRIAL_RUN_MS = 500,
};

bool ll_trial_is_asked(int argc, char **argv);

/* -EINVAL for who types it. */
int ll_trial_main(struct ll_err *err);

#endif
