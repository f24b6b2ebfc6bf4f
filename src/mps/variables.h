/*
 * variables.h - the environment of the programs that we start for a place. Private to src/mps.
 */
#ifndef LOADLINE_MPS_VARIABLES_H
#define LOADLINE_MPS_VARIABLES_H

#include "mps/place.h"

struct ll_err;

enum { LL_MPS_OWN_VARIABLES = 5 };

struct ll_mps_variables {
	char *own[LL_MPS_OWN_VARIABLES];
	char **list; /* NULL-ended: ours, then the caller's */
};

/*
 * The caller's environment with this place in it, and without what would govern, limit or preload into the program:
 * what holds for its caller does not hold for a daemon that serves all. visible: what CUDA_VISIBLE_DEVICES becomes;
 * NULL: it is left out. -ENOMEM.
 */
int ll_mps_variables_make(const struct ll_mps_place *place, const char *visible, struct ll_mps_variables *ret_variables,
			  struct ll_err *err);
void ll_mps_variables_fini(struct ll_mps_variables *variables);

#endif
