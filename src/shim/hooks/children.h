/*
 * children.h - tells a client of MPS, in one line, why the driver does not take its code.
 *
 * MPS loads no code that launches kernels from kernels (dynamic parallelism). The driver says so where it loads the
 * code. Of a module that is the call that loads it. A library of kernels is loaded, and so refused, only when something
 * needs it in a context: its module, a variable, a function, a launch, a node of a graph. So every hook of such a
 * function hands the driver's answer through here, after its own scopes (reentry.h): inside a call of ours nothing is
 * said.
 */
#ifndef LOADLINE_SHIM_HOOKS_CHILDREN_H
#define LOADLINE_SHIM_HOOKS_CHILDREN_H

#include "abi/cuda.h"

/* The same line is written once in a process, and only if it is a client of MPS. symbol: the function that answered. */
void ll_children_say(const char *symbol, ll_cu_result status);

/* Gives the driver's answer back. */
static inline ll_cu_result ll_children_answer(const char *symbol, ll_cu_result status)
{
	if (__builtin_expect(status == LL_CUDA_ERROR_CDP_NOT_SUPPORTED, 0))
		ll_children_say(symbol, status);
	return status;
}

/* The same for functions that do nothing but load code or find it. Drivers from before CUDA 12.1 have no error of its
 * own for this, and answer "not supported", which of other functions has many reasons. */
static inline ll_cu_result ll_children_answer_of_load(const char *symbol, ll_cu_result status)
{
	if (__builtin_expect(status == LL_CUDA_ERROR_NOT_SUPPORTED, 0))
		ll_children_say(symbol, status);
	return ll_children_answer(symbol, status);
}

#endif
