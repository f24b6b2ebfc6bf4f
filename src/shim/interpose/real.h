/*
 * real.h - the driver's own functions, as tables of typed pointers, bound at first use.
 *
 *     ll_real()->cuMemAlloc_v2(&address, bytes), ll_real_nvml()->nvmlDeviceGetMemoryInfo(device, &memory)
 *
 * The members are the rows of hooks.def and calls.def. No member is ever NULL. If the driver lacks a function, or there
 * is no driver, the member answers CUDA_ERROR_NOT_SUPPORTED or NVML_ERROR_FUNCTION_NOT_FOUND; LL_REAL_HAS tells.
 *
 * If the other library of ours (ll_hook_behind) was preloaded behind this one, the member of a hooked function is that
 * library's hook, which passes the call on to the driver. So each of the two sees every call, and neither sees one
 * twice. Functions of calls.def are always the driver's own.
 *
 * The library that the program itself has loaded is bound, the first one if there are several; one with the driver's
 * name before one that only has its functions. If the program has
 * loaded none, only a call into a hook loads one. Once bound, the library is kept from being unloaded, and the table
 * changes by ll_real_complete alone. Binding takes no lock, because a program's thread may come here out of a
 * constructor, with the loader's lock held. It survives a fork at any moment: threads that come at the same time each
 * make a table, and the first one counts.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_REAL_H
#define LOADLINE_SHIM_INTERPOSE_REAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/interpose/elf_lookup.h"

/*
 * The driver's prototypes, as symbols that this library may export. Only hooks have definitions under these names, and
 * this library calls no hook. It calls the driver by ll_real()->name(). A call of a function that is no hook does not
 * link (-z defs).
 */
#pragma GCC visibility push(default)
#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"
#pragma GCC visibility pop

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

/* Returns the table; NULL before it was first asked for. */
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

/* Whether the driver has the function: LL_REAL_HAS(cuMemAlloc_v2). */
#define LL_REAL_HAS(symbol) (!ll_real_is_missing((void (*)(void))ll_real()->symbol))
bool ll_real_is_missing(void (*function)(void));

/* Whether a call that the library made by itself has failed in the driver. A function that the driver lacks has not:
 * the library goes on without its answer. */
static inline bool ll_real_has_failed(ll_cu_result status)
{
	return status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * Whether the object is the driver's library, or one of several: it is bound, or has the driver's name, or exports what
 * every driver has, such as a library that the driver's name only forwards to. ll_real_is_named: it has the name.
 */
bool ll_real_is_driver(enum ll_real_library which, const struct ll_elf_object *object);
bool ll_real_is_named(enum ll_real_library which, const struct ll_elf_object *object);

/* Fills the table's members that the bound library lacks from another object of the driver. A libcuda.so.1 that
 * forwards may export little more than cuGetProcAddress; what that answers with lies in `object`. */
void ll_real_complete(enum ll_real_library which, const struct ll_elf_object *object);

/* Gives the library that is bound, or that would be bound now. False: none is loaded. Never loads one. */
bool ll_real_object(enum ll_real_library which, struct ll_elf_object *ret_object);

#endif
