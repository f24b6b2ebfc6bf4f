/*
 * real.h - the driver's own functions, as tables of typed pointers, bound at first use.
 *
 *     ll_real()->cuMemAlloc_v2(&address, bytes), ll_real_nvml()->nvmlDeviceGetMemoryInfo(device, &memory)
 *
 * The members are the rows of hooks.def and calls.def. None is ever NULL: where the driver lacks a function, or there
 * is no driver, its member answers CUDA_ERROR_NOT_SUPPORTED or NVML_ERROR_FUNCTION_NOT_FOUND; LL_REAL_HAS tells.
 *
 * Where the other library of ours (ll_hook_behind) was preloaded behind this one, a hooked function's member is that
 * library's hook, which passes on to the driver: so each of them sees every call, and none is called twice. Functions
 * of calls.def are always the driver's own.
 *
 * Bound is the library that the program itself has loaded, the first one where it has several; only a call into a hook
 * with none there loads one. Once bound it stays: it is kept from being unloaded, and the table never changes. Binding
 * takes no lock (a program's thread may come here out of a constructor, with the loader's lock held) and survives a
 * fork at any moment: threads that come at once each make a table, and the first one counts.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_REAL_H
#define LOADLINE_SHIM_INTERPOSE_REAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/interpose/elf_lookup.h"
#include "shim/interpose/prototypes.h"

struct ll_real {
#define LL_HOOK(symbol) __typeof__(&symbol) symbol;
#include "shim/interpose/hooks.def"
#define LL_CALL(symbol) __typeof__(&symbol) symbol;
#include "shim/interpose/calls.def"
};

struct ll_real_nvml {
#define LL_HOOK_NVML(symbol) __typeof__(&symbol) symbol;
#include "shim/interpose/hooks.def"
#define LL_CALL_NVML(symbol) __typeof__(&symbol) symbol;
#include "shim/interpose/calls.def"
};

enum ll_real_library { LL_REAL_CUDA, LL_REAL_NVML };

extern _Atomic(const void *) ll_real_bound[2];
const void *ll_real_bind(enum ll_real_library which);

/* NULL before it was first asked for. */
static inline const struct ll_real *ll_real_if_bound(void)
{
	return atomic_load_explicit(&ll_real_bound[LL_REAL_CUDA], memory_order_acquire);
}

static inline const struct ll_real *ll_real(void)
{
	const struct ll_real *table = ll_real_if_bound();
	return __builtin_expect(table != NULL, 1) ? table : ll_real_bind(LL_REAL_CUDA);
}

static inline const struct ll_real_nvml *ll_real_nvml(void)
{
	const void *table = atomic_load_explicit(&ll_real_bound[LL_REAL_NVML], memory_order_acquire);
	return __builtin_expect(table != NULL, 1) ? table : ll_real_bind(LL_REAL_NVML);
}

/* Whether the driver has it: LL_REAL_HAS(cuMemAlloc_v2). */
#define LL_REAL_HAS(symbol) (!ll_real_is_missing((void (*)(void))ll_real()->symbol))
bool ll_real_is_missing(void (*function)(void));

/* The library that is bound, or that binding now would take; false where none is loaded. Never loads one. */
bool ll_real_object(enum ll_real_library which, struct ll_elf_object *ret_object);

#endif
