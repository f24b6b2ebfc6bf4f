/*
 * hook.h - what a file with hooks includes.
 *
 * A hook is a function of ours that has the name and the signature of one of the driver's:
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
 * LL_DRIVER_CALL (shim/time/driver_calls.h) notes that the thread is inside; a hook of a function that uses no card has
 * a row in hooks_no_card.def instead.
 *
 * A hook that only notes this and calls the driver is a row of hooks_passing.def.
 *
 * To add one: a row in the hooks_*.def of its topic, the definition, and for each family with versions its rows in
 * hooks_versions.def. A signature that is not in src/abi yet goes there first, as a row.
 *
 * If the driver lacks the function, ll_real()'s member answers CUDA_ERROR_NOT_SUPPORTED, or for NVML
 * NVML_ERROR_FUNCTION_NOT_FOUND. A hook keeps errno (LL_REENTRY_SCOPE does), prints nothing, and never waits without a
 * bound.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_HOOK_H
#define LOADLINE_SHIM_INTERPOSE_HOOK_H

#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"

#define LL_HOOK_EXPORT __attribute__((visibility("default")))

#endif
