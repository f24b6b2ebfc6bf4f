/*
 * module.h - modules and their functions, and libraries' kernels, which can be used as functions.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_MODULE_H
#define LOADLINE_SIM_CUDA_LOCAL_MODULE_H

#include "cuda/local/state.h"

/* Loads a module from PTX into a context. library: the library whose kernels it is loaded for, or NULL. err: what is
 * wrong with the text; may be NULL. Returns INVALID_PTX, UNSUPPORTED_PTX_VERSION, NO_BINARY_FOR_GPU, INVALID_IMAGE or
 * OUT_OF_MEMORY. */
ll_cu_result sim_module_load(struct ll_cu_context *context, const char *text, struct ll_cu_library *library,
			     struct ll_cu_module **ret_module, struct ll_err *err);

/* Frees a module with its functions and variables. */
void sim_module_forget(struct ll_cu_module *module);

/* Checks whether a text may be loaded. Machine code is refused with NO_BINARY_FOR_GPU, a text that is no code with
 * INVALID_IMAGE. */
ll_cu_result sim_module_check_image(const char *text);

/* Finds the module of a library in a context, and loads it if necessary. Errors are those of sim_module_load. */
ll_cu_result sim_module_in(struct ll_cu_context *context, struct ll_cu_library *library,
			   struct ll_cu_module **ret_module);

/* Finds a module's function by its name. NOT_FOUND, OUT_OF_MEMORY. */
ll_cu_result sim_module_function(struct ll_cu_module *module, const char *name, struct ll_cu_function **ret_function);

/* Returns whether a handle is a function, or a library's kernel. It needs no lock. */
bool sim_is_function(const struct ll_cu_function *handle);

/* Finds the function of a handle in a context: the function itself, or the library's kernel there. The library's text
 * is loaded into the context if necessary. INVALID_HANDLE, and the errors of sim_module_load. */
ll_cu_result sim_function_in(struct ll_cu_context *context, struct ll_cu_function *handle,
			     struct ll_cu_function **ret_function);

#endif
