/*
 * real.h - the driver's own functions, as tables of typed pointers that are filled at first use.
 *
 *     ll_real()->cuMemAlloc_v2(&address, bytes), ll_real_nvml()->nvmlDeviceGetMemoryInfo(device, &memory)
 *
 * The members are the rows of hooks.def. A member is never NULL. If the driver does not have a function,
 * or if there is no driver, the member is a function that returns CUDA_ERROR_NOT_SUPPORTED or
 * NVML_ERROR_FUNCTION_NOT_FOUND. LL_REAL_HAS returns whether the driver has a function.
 *
 * If Loadline's other library (ll_hook_behind) was preloaded behind this one, the member of a hooked function is that
 * library's hook, which passes the call to the driver. So each of the two libraries sees every call once. Functions
 * that are not hooked (LL_CALL) are always the driver's own.
 *
 * The bound library is the driver library that the program itself has loaded. If there are several, it is the first
 * one. A library with the driver's name is preferred to one that only has its functions. If the program has loaded
 * none, only a call of a hook loads one. The bound library is not unloaded any more, and only ll_real_complete changes
 * the table. Binding takes no lock, because a thread may run it in a constructor while it holds the loader's lock. So a
 * fork at any moment does no harm. If several threads bind at the same time, each makes a table, and the first table is
 * used.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_REAL_H
#define LOADLINE_SHIM_INTERPOSE_REAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/interpose/elf_lookup.h"

/*
 * The driver's prototypes, as symbols that this library may export. Only hooks are defined under these names, and this
 * library calls no hook. It calls the driver by ll_real()->name(). The linker rejects a call of a function that is not
 * a hook (-z defs).
 */
#pragma GCC visibility push(default)
#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"
#pragma GCC visibility pop

struct ll_real {
#define LL_HOOK(symbol) __typeof__(&symbol) symbol;
#define LL_CALL(symbol) __typeof__(&symbol) symbol;
#include "shim/interpose/hooks.def"
};

struct ll_real_nvml {
#define LL_HOOK_NVML(symbol) __typeof__(&symbol) symbol;
#define LL_CALL_NVML(symbol) __typeof__(&symbol) symbol;
#include "shim/interpose/hooks.def"
};

enum ll_real_library { LL_REAL_CUDA, LL_REAL_NVML };

extern _Atomic(const void *) ll_real_bound[2];
const void *ll_real_bind(enum ll_real_library which);

/* Returns the table; NULL: it was not bound yet. */
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

/* Returns whether the driver has the function, for example LL_REAL_HAS(cuMemAlloc_v2). */
#define LL_REAL_HAS(symbol) (!ll_real_is_missing((void (*)(void))ll_real()->symbol))
bool ll_real_is_missing(void (*function)(void));

/* Returns whether a call that the library itself made has failed in the driver. If the driver does not have the
 * function, this does not count as a failure, and the library continues without the result. */
static inline bool ll_real_has_failed(ll_cu_result status)
{
	return status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * ll_real_is_driver returns whether the object is a driver library: it is bound, has the driver's name, or exports the
 * functions that every driver has. The last case is for a library to which libcuda.so.1 only forwards. ll_real_is_named
 * returns whether the object has the driver's name.
 */
bool ll_real_is_driver(enum ll_real_library which, const struct ll_elf_object *object);
bool ll_real_is_named(enum ll_real_library which, const struct ll_elf_object *object);

/* Fills members that the bound library does not have from another object of the driver. A libcuda.so.1 that only
 * forwards may export little more than cuGetProcAddress. The functions that cuGetProcAddress returns are then in
 * `object`. */
void ll_real_complete(enum ll_real_library which, const struct ll_elf_object *object);

/* Gives the library that is bound, or that would be bound now. Returns false if none is loaded. Never loads one. */
bool ll_real_object(enum ll_real_library which, struct ll_elf_object *ret_object);

#endif
