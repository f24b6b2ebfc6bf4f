/*
 * environment.h - what has to be so outside of the probe's processes: the variables they start with, a private
 * MPS daemon, the card's compute mode.
 */
#ifndef LOADLINE_CLI_PROBE_ENVIRONMENT_H
#define LOADLINE_CLI_PROBE_ENVIRONMENT_H

#include <stdbool.h>

#include "driver/cards.h"
#include "probe/cell.h"

struct ll_err;
struct ll_probe_keeper;
struct ll_probe_mps;

enum { LL_PROBE_VARIABLES = 9, LL_PROBE_VARIABLE_SIZE = 320 };

/* Zeroed, with the first four filled in. */
struct ll_probe_environment {
	struct ll_probe_keeper *keeper; /* lives longer */
	const struct ll_driver *driver;
	const struct ll_card *card;
	bool may_set_exclusive;
	bool has_set_exclusive; /* the card's mode is ours to put back */
	struct ll_probe_mps *mps;
	char no_mps[300]; /* why there is none: it is not tried again */
	char texts[LL_PROBE_VARIABLES][LL_PROBE_VARIABLE_SIZE];
	const char *variables[LL_PROBE_VARIABLES + 1];
};

/* As ll_probe_host's arrange wants it; user is the environment. */
int ll_probe_environment_arrange(void *user, struct ll_probe_under under, unsigned connections,
				 const char *const **ret_environment, struct ll_err *err);

/* Puts the mode back, ends the daemon, removes its folders. The first thing that goes wrong is told; all is tried. */
int ll_probe_environment_fini(struct ll_probe_environment *environment, struct ll_err *err);

#endif
