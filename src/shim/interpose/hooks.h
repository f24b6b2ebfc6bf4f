/*
 * hooks.h - the hooks as data, for those who hand out functions: dlsym.c and proc_address.c.
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

/* Of the library that this is linked into. */
extern const struct ll_hook ll_hooks[];
extern const size_t ll_hook_count;

/* The library of ours that may stand behind this one, by the beginning of its name: the other of the two. A second copy
 * of this library is left out, else both would charge, or time, the same call. */
extern const char *const ll_hook_behind[];

/* The hook of that exact symbol; NULL. */
const struct ll_hook *ll_hook_find(const char *symbol);

/* Whether the symbol is a variant of the function with that plain name, or is that name: cuMemAlloc_v2 of cuMemAlloc,
 * cuLaunchKernel_ptsz of cuLaunchKernel. */
bool ll_hook_is_variant(const char *symbol, const char *name);

/* Our function, as the loader's look-ups hand it out. */
void *ll_hook_address(const struct ll_hook *hook);

/* What the driver exports under the hook's symbol; NULL where it lacks it. Binds the driver. */
void *ll_hook_real(const struct ll_hook *hook);

#endif
