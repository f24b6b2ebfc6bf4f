/*
 * hook.h - the header that each file with hooks includes.
 *
 * A hook is a function of the library with the name and the signature of one of the driver's functions:
 *
 *     LL_HOOK_EXPORT ll_cu_result cuMemFree_v2(ll_cu_deviceptr address)
 *     {
 *             LL_DRIVER_CALL(cuMemFree_v2);
 *             if (ll_reentry_is_inside())
 *                     return ll_real()->cuMemFree_v2(address);
 *             LL_REENTRY_SCOPE();
 *             ...
 *             ll_cu_result status = ll_real()->cuMemFree_v2(address);
 *             ...
 *             return status;
 *     }
 *
 * LL_DRIVER_CALL (shim/time/driver_calls.h) notes that the thread is inside a driver call. The hook of a function that
 * uses no card has a row in hooks_no_card.def instead.
 *
 * A hook that does only this and calls the driver is a row of hooks_passing.def.
 *
 * To add a hook, add a row in the hooks_*.def file of its topic, the definition, and, if the function has versions, its
 * rows in hooks_versions.def. If src/abi does not have the signature yet, first add it there as a row.
 *
 * If the driver does not have the function, ll_real()'s member returns CUDA_ERROR_NOT_SUPPORTED, or
 * NVML_ERROR_FUNCTION_NOT_FOUND for NVML. A hook does not change errno (LL_REENTRY_SCOPE restores it), prints nothing,
 * and never waits without a bound.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_HOOK_H
#define LOADLINE_SHIM_INTERPOSE_HOOK_H

#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"

#define LL_HOOK_EXPORT __attribute__((visibility("default")))

#endif
