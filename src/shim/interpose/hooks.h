/*
 * hooks.h - the hooks as data, for dlsym.c and proc_address.c, which hand out functions.
 *
 * Two libraries of ours stand in front of the driver: libloadline-cuda.so, which governs, and libloadline-events.so,
 * which traces. Both link this folder; each brings a table of hooks of its own (hook_table.c).
 */
#ifndef LOADLINE_SHIM_INTERPOSE_HOOKS_H
#define LOADLINE_SHIM_INTERPOSE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/interpose/real.h"

struct ll_hook {
	const char *symbol;
	void (*function)(void); /* ours */
	size_t slot;            /* of the real one, in struct ll_real or struct ll_real_nvml */
	enum ll_real_library library;
};

/* The table of the library that this is linked into. */
extern const struct ll_hook ll_hooks[];
extern const size_t ll_hook_count;

/* The library of ours that may be loaded behind this one, by the beginning of its name: the other of the two. A second
 * copy of this library is left out. Otherwise both copies would charge, or time, the same call. */
extern const char *const ll_hook_behind[];

/* Returns the hook of that exact symbol, or NULL. */
const struct ll_hook *ll_hook_find(const char *symbol);

/* Whether the symbol is a variant of the function with that plain name, or is that name: cuMemAlloc_v2 of cuMemAlloc,
 * cuLaunchKernel_ptsz of cuLaunchKernel. */
bool ll_hook_is_variant(const char *symbol, const char *name);

/* Returns the hook's function, as the loader's look-ups hand it out. */
void *ll_hook_address(const struct ll_hook *hook);

/* Returns the driver's function of the hook's symbol; NULL: the driver lacks it. Binds the driver. */
void *ll_hook_real(const struct ll_hook *hook);

#endif
