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
 * uses no card lacks it; its row in abi/cuda.def says BODY_NO_CARD.
 *
 * To add a hook, name its kind in the function's row of abi/cuda.def. Only a kind BODY needs a definition.
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

/*
 * LL_ROW_HOOKS(definition, symbol, suffix, params, args) defines the hook of a row of abi/cuda.def and the hook of its
 * variant. definition expands to `define, stream, make, one, two`: define is a macro, the others are its arguments,
 * empty where it uses none. Both hooks have the same text, so that they have one kernel key.
 */
#define LL_ROW_HOOKS(...) LL_ROW_HOOKS_OF(__VA_ARGS__)
#define LL_ROW_HOOKS_OF(define, stream, make, one, two, symbol, suffix, params, args)                                  \
	define(symbol, #symbol, stream, make, one, two, params, args)                                                  \
	    LL_ROW_HOOK_##suffix(define, symbol, stream, make, one, two, params, args)
#define LL_ROW_HOOK_none(define, symbol, stream, make, one, two, params, args)
#define LL_ROW_HOOK_ptsz(define, symbol, stream, make, one, two, params, args)                                         \
	define(symbol##_ptsz, #symbol, ll_stream_per_thread(stream), make, one, two, params, args)
#define LL_ROW_HOOK_ptds(define, symbol, stream, make, one, two, params, args)                                         \
	define(symbol##_ptds, #symbol, ll_stream_per_thread(stream), make, one, two, params, args)

#endif
