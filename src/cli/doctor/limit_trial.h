/*
 * limit_trial.h - the governed program that tries to exceed its limits. `loadline doctor` starts it to see that limits
 * hold.
 *
 * It is loadline itself, started with the word below as its argument. Its environment is that of a tenant with
 * LL_TRIAL_MEMORY_BYTES of memory, contexts not counted, and LL_TRIAL_CAP_PERMILLE of time. It reaches the driver by
 * dlopen and dlsym, as other programs do. It prints one line for each limit: "memory REFUSED_BYTES" or "memory 0", then
 * "compute PERMILLE". It tries the memory limit by all other ways to the driver too (trial_ways.h), each with its line.
 * An earlier failure is an error like that of any command.
 */
#ifndef LOADLINE_CLI_DOCTOR_LIMIT_TRIAL_H
#define LOADLINE_CLI_DOCTOR_LIMIT_TRIAL_H

#include <stdbool.h>

struct ll_err;

#define LL_TRIAL_WORD "limit-trial"

enum {
	LL_TRIAL_MEMORY_BYTES = 64 << 20,
	LL_TRIAL_FIRST_BYTES = 16 << 20,  /* within the limit */
	LL_TRIAL_SECOND_BYTES = 64 << 20, /* exceeds the limit together with the first */
	LL_TRIAL_CAP_PERMILLE = 250,
	LL_TRIAL_RUN_MS = 500,
};

bool ll_trial_is_asked(int argc, char **argv);

/* Runs the trial, or the part of it that has a word of its own. -EINVAL: a user typed the word. */
int ll_trial_main(const char *word, struct ll_err *err);

#endif
