/*
 * function.h - the attributes of functions and of libraries' kernels.
 */
#ifndef LOADLINE_SIM_CUDA_FUNCTION_H
#define LOADLINE_SIM_CUDA_FUNCTION_H

#include "cuda/local/state.h"

/* Reads an attribute of a function. max_dynamic: the dynamic shared memory that the program has allowed, in bytes, or
 * 0. INVALID_VALUE: there is no such attribute. It needs no lock. */
ll_cu_result sim_function_attribute(uint32_t card, const struct sim_ptx *ptx, int max_dynamic,
				    enum ll_cu_function_attribute attribute, int *ret_value);

/* Sets an attribute. max_dynamic: the variable for the dynamic shared memory that the program allows. INVALID_VALUE. It
 * takes the local lock itself. */
ll_cu_result sim_function_set_attribute(enum ll_cu_function_attribute attribute, int value, int *max_dynamic);

/* Finds the offset of a parameter in the buffer of arguments, and its size. ret_bytes may be NULL. INVALID_VALUE: there
 * is no such parameter. It needs no lock. */
ll_cu_result sim_function_param(const struct sim_ptx_entry *entry, size_t index, size_t *ret_offset, size_t *ret_bytes);

#endif
