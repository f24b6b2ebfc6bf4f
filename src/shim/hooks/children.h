/*
 * children.h - writes one line for a client of MPS if the driver does not accept its code.
 *
 * MPS does not load code that launches kernels from kernels (dynamic parallelism). The driver returns an error when it
 * loads such code. A module is loaded by the call that names it. A library of kernels is loaded only when a context
 * needs it: for its module, a variable, a function, a launch, or a node of a graph. So every hook of such a function
 * passes the driver's result through this file. It does so after its own scopes (reentry.h), because inside a call of
 * the library no line is written.
 */
#ifndef LOADLINE_SHIM_HOOKS_CHILDREN_H
#define LOADLINE_SHIM_HOOKS_CHILDREN_H

#include "abi/cuda.h"

/* Writes the line once in a process, and only if the process is a client of MPS. symbol: the driver's function that
 * returned the error. */
void ll_children_say(const char *symbol, ll_cu_result status);

/* Returns the driver's result unchanged. */
static inline ll_cu_result ll_children_answer(const char *symbol, ll_cu_result status)
{
	if (__builtin_expect(status == LL_CUDA_ERROR_CDP_NOT_SUPPORTED, 0))
		ll_children_say(symbol, status);
	return status;
}

/* The same for functions that only load or find code. Drivers before CUDA 12.1 have no special error for this and
 * return "not supported". For other functions this error has many causes. */
static inline ll_cu_result ll_children_answer_of_load(const char *symbol, ll_cu_result status)
{
	if (__builtin_expect(status == LL_CUDA_ERROR_NOT_SUPPORTED, 0))
		ll_children_say(symbol, status);
	return ll_children_answer(symbol, status);
}

#endif
