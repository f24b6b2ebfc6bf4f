/*
 * environment.h - the environment of the probe's processes: their variables, a private MPS daemon, the card's compute
 * mode.
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

/* The caller zeroes it and fills in the first four fields. */
struct ll_probe_environment {
	struct ll_probe_keeper *keeper; /* must outlive the environment */
	const struct ll_driver *driver;
	const struct ll_card *card;
	bool may_set_exclusive;
	bool has_set_exclusive; /* the probe has changed the card's mode, and restores it */
	struct ll_probe_mps *mps;
	char no_mps[300]; /* why the MPS daemon could not be started; it is not tried again */
	char texts[LL_PROBE_VARIABLES][LL_PROBE_VARIABLE_SIZE];
	const char *variables[LL_PROBE_VARIABLES + 1];
};

/* The function for arrange of struct ll_probe_host. user: the environment. */
int ll_probe_environment_arrange(void *user, struct ll_probe_under under, unsigned connections,
				 const char *const **ret_environment, struct ll_err *err);

/* Restores the mode, ends the daemon and removes its folders. It tries all of these, and returns the first error. */
int ll_probe_environment_fini(struct ll_probe_environment *environment, struct ll_err *err);

#endif
