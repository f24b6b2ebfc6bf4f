/*
 * stand_in.h - which function of ours a program gets in the place of one that it looks up by name: a hook in the place
 * of the driver's function, and our dlsym in the place of libc's.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_STAND_IN_H
#define LOADLINE_SHIM_INTERPOSE_STAND_IN_H

#include <stdbool.h>

#include "shim/interpose/hooks.h"

struct ll_stand_in {
	void *function;             /* ours */
	const struct ll_hook *hook; /* NULL: it stands in front of libc's dlsym or dlvsym */
};

/* Finds the function of ours for that name. False: the name is nothing to us. */
bool ll_stand_in_find(const char *name, struct ll_stand_in *ret_stand_in);

/*
 * Whether the program gets the function of ours in the place of `found`, libc's answer, which may be NULL. True if
 * found is the driver's function, or libc's dlsym. False for functions of other libraries with such a name.
 *
 * caller: an address in the object that asks. A driver that asks is told the truth: a libcuda.so.1 that forwards to
 * another library would otherwise forward to our hook, and the hook calls that libcuda.so.1.
 */
bool ll_stand_in_replaces(const struct ll_stand_in *wanted, const void *found, const void *caller);

#endif
