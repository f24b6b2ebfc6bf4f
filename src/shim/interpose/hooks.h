/*
 * hooks.h - the table of hooks, for dlsym.c and proc_address.c, which return functions to the program.
 *
 * Loadline has two libraries that replace functions of the driver: libloadline-cuda.so governs, and
 * libloadline-events.so traces. Both link this folder, and each has its own table of hooks (hook_table.c).
 */
#ifndef LOADLINE_SHIM_INTERPOSE_HOOKS_H
#define LOADLINE_SHIM_INTERPOSE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/interpose/real.h"

struct ll_hook {
	const char *symbol;
	void (*function)(void); /* the hook itself */
	size_t slot;            /* offset of the driver's function in struct ll_real or struct ll_real_nvml */
	enum ll_real_library library;
};

/* The table of the library that contains this code. */
extern const struct ll_hook ll_hooks[];
extern const size_t ll_hook_count;

/* The name stem of the other of the two libraries, which may be loaded behind this one. A second copy of this library
 * is not used. Otherwise both copies would charge or time the same call. */
extern const char *const ll_hook_behind[];

/* Returns the hook with exactly this symbol, or NULL. */
const struct ll_hook *ll_hook_find(const char *symbol);

/* Returns whether the symbol is the plain name or a variant of it. Examples: cuMemAlloc_v2 is a variant of cuMemAlloc,
 * and cuLaunchKernel_ptsz of cuLaunchKernel. */
bool ll_hook_is_variant(const char *symbol, const char *name);

/* Returns the hook's function, as the loader's look-ups return it. */
void *ll_hook_address(const struct ll_hook *hook);

/* Returns the driver's function of the hook's symbol; NULL: the driver does not have it. Binds the driver. */
void *ll_hook_real(const struct ll_hook *hook);

#endif
