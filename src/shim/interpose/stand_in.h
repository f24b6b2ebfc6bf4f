/*
 * stand_in.h - finds the library's function that a program gets instead of a function that it looks up by name: a hook
 * instead of the driver's function, and this library's dlsym instead of libc's.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_STAND_IN_H
#define LOADLINE_SHIM_INTERPOSE_STAND_IN_H

#include <stdbool.h>

#include "shim/interpose/hooks.h"

struct ll_stand_in {
	void *function;             /* the library's function */
	const struct ll_hook *hook; /* NULL: it replaces libc's dlsym or dlvsym */
};

/* Finds the library's function for this name. Returns false if there is none. */
bool ll_stand_in_find(const char *name, struct ll_stand_in *ret_stand_in);

/*
 * Returns whether the program gets the library's function instead of `found`, which is libc's answer and may be NULL.
 * Returns true if `found` is the driver's function or libc's dlsym. Returns false for a function of another library
 * with this name.
 *
 * caller: an address in the calling object. If the caller is the driver, it gets the real function. Otherwise a
 * libcuda.so.1 that forwards to another library would forward to the hook, and the hook calls this libcuda.so.1.
 */
bool ll_stand_in_replaces(const struct ll_stand_in *wanted, const void *found, const void *caller);

#endif
