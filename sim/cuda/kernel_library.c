/*
 * Libraries of kernels. A library is loaded once, and belongs to no context. Each context that uses a kernel gets a
 * module from the library's text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "cuda/enter.h"
#include "cuda/function.h"
#include "cuda/local/current.h"
#include "cuda/local/module.h"

static struct ll_cu_library *libraries;

static bool is_library(const struct ll_cu_library *library)
{
	return library && library->magic == SIM_MAGIC_LIBRARY;
}

static bool is_kernel(const struct ll_cu_kernel *kernel)
{
	return kernel && kernel->magic == SIM_MAGIC_KERNEL;
}

static void free_library(struct ll_cu_library *library)
{
	while (library->kernels) {
		struct ll_cu_kernel *kernel = library->kernels;
		library->kernels = kernel->next;
		kernel->magic = 0;
		free(kernel);
	}
	sim_ptx_fini(&library->ptx);
	library->magic = 0;
	free(library->text);
	free(library);
}

static ll_cu_result load_library(const char *text, struct ll_cu_library **ret_library, struct ll_err *err)
{
	ll_cu_result status = sim_module_check_image(text);
	if (status)
		return status;
	struct ll_cu_library *library = calloc(1, sizeof *library);
	if (!library)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	int rc = sim_ptx_parse(text, &library->ptx, err);
	if (rc < 0) {
		free(library);
		return rc == -ENOMEM ? LL_CUDA_ERROR_OUT_OF_MEMORY : LL_CUDA_ERROR_INVALID_PTX;
	}
	library->magic = SIM_MAGIC_LIBRARY;
	library->text = strdup(text);
	for (unsigned i = library->ptx.entry_count; library->text && i-- > 0;) {
		struct ll_cu_kernel *kernel = calloc(1, sizeof *kernel);
		if (!kernel)
			break;
		*kernel = (struct ll_cu_kernel){.magic = SIM_MAGIC_KERNEL,
						.library = library,
						.entry = &library->ptx.entries[i],
						.next = library->kernels};
		library->kernels = kernel;
	}
	if (!library->text || (library->ptx.entry_count && !library->kernels)) {
		free_library(library);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	library->next = libraries;
	libraries = library;
	*ret_library = library;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuLibraryLoadData(struct ll_cu_library **ret_library, const void *image,
			       enum ll_cu_jit_option *jit_options, void **jit_values, unsigned int jit_count,
			       enum ll_cu_library_option *options, void **values, unsigned int count)
{
	SIM_ENTER();
	if (!ret_library || !image || (jit_count && (!jit_options || !jit_values)) || (count && !options))
		return LL_CUDA_ERROR_INVALID_VALUE;
	(void)values;
	struct ll_err err = {0};
	sim_cuda_lock();
	ll_cu_result status = load_library(image, ret_library, &err);
	sim_cuda_unlock();
	char *log = NULL;
	size_t log_size = 0;
	for (unsigned i = 0; i < jit_count; i++) {
		if (jit_options[i] == LL_CU_JIT_ERROR_LOG_BUFFER)
			log = jit_values[i];
		else if (jit_options[i] == LL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			log_size = (size_t)(uintptr_t)jit_values[i];
	}
	if (log && log_size)
		snprintf(log, log_size, "%s", err.text);
	return status;
}

ll_cu_result cuLibraryLoadFromFile(struct ll_cu_library **ret_library, const char *path,
				   enum ll_cu_jit_option *jit_options, void **jit_values, unsigned int jit_count,
				   enum ll_cu_library_option *options, void **values, unsigned int count)
{
	SIM_ENTER();
	if (!ret_library || !path)
		return LL_CUDA_ERROR_INVALID_VALUE;
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	if (!file || fseek(file, 0, SEEK_END) < 0)
		return LL_CUDA_ERROR_FILE_NOT_FOUND;
	long size = ftell(file);
	LL_SCOPE_FREE char *text = size < 0 ? NULL : calloc(1, (size_t)size + 4);
	if (!text || fseek(file, 0, SEEK_SET) < 0 || fread(text, 1, (size_t)size, file) != (size_t)size)
		return LL_CUDA_ERROR_FILE_NOT_FOUND;
	return cuLibraryLoadData(ret_library, text, jit_options, jit_values, jit_count, options, values, count);
}

ll_cu_result cuLibraryUnload(struct ll_cu_library *library)
{
	SIM_ENTER();
	if (!is_library(library))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	struct ll_cu_library **link = &libraries;
	while (*link && *link != library)
		link = &(*link)->next;
	if (*link)
		*link = library->next;
	for (struct ll_cu_context *context = sim_cuda.contexts; context; context = context->next) {
		for (struct ll_cu_module *module = context->modules, *next; module; module = next) {
			next = module->next;
			if (module->library == library)
				sim_module_forget(module);
		}
	}
	free_library(library);
	sim_cuda_unlock();
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuLibraryGetKernel(struct ll_cu_kernel **ret_kernel, struct ll_cu_library *library, const char *name)
{
	SIM_ENTER();
	if (!ret_kernel || !name)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_library(library))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	for (struct ll_cu_kernel *kernel = library->kernels; kernel; kernel = kernel->next) {
		if (strcmp(kernel->entry->name, name) == 0) {
			*ret_kernel = kernel;
			return LL_CUDA_SUCCESS;
		}
	}
	return LL_CUDA_ERROR_NOT_FOUND;
}

ll_cu_result cuLibraryGetKernelCount(unsigned int *ret_count, struct ll_cu_library *library)
{
	SIM_ENTER();
	if (!ret_count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_library(library))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_count = library->ptx.entry_count;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuLibraryEnumerateKernels(struct ll_cu_kernel **ret_kernels, unsigned int count,
				       struct ll_cu_library *library)
{
	SIM_ENTER();
	if (!ret_kernels)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_library(library))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	for (struct ll_cu_kernel *kernel = library->kernels; kernel && count; kernel = kernel->next, count--)
		*ret_kernels++ = kernel;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result current_module(struct ll_cu_library *library, struct ll_cu_module **ret_module)
{
	struct ll_cu_context *context;
	if (!is_library(library))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_module_in(context, library, ret_module);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuLibraryGetModule(struct ll_cu_module **ret_module, struct ll_cu_library *library)
{
	SIM_ENTER();
	return ret_module ? current_module(library, ret_module) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result cuLibraryGetGlobal(ll_cu_deviceptr *ret_address, size_t *ret_bytes, struct ll_cu_library *library,
				const char *name)
{
	SIM_ENTER();
	struct ll_cu_module *module;
	if (!name)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = current_module(library, &module);
	return status ? status : cuModuleGetGlobal_v2(ret_address, ret_bytes, module, name);
}

/* No library has managed variables. */
ll_cu_result cuLibraryGetManaged(ll_cu_deviceptr *ret_address, size_t *ret_bytes, struct ll_cu_library *library,
				 const char *name)
{
	SIM_ENTER();
	if (!name || (!ret_address && !ret_bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	return is_library(library) ? LL_CUDA_ERROR_NOT_FOUND : LL_CUDA_ERROR_INVALID_HANDLE;
}

ll_cu_result cuKernelGetFunction(struct ll_cu_function **ret_function, struct ll_cu_kernel *kernel)
{
	SIM_ENTER();
	struct ll_cu_context *context;
	if (!ret_function)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_kernel(kernel))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_function_in(context, (void *)kernel, ret_function);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuKernelGetLibrary(struct ll_cu_library **ret_library, struct ll_cu_kernel *kernel)
{
	SIM_ENTER();
	if (!ret_library)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_kernel(kernel))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_library = kernel->library;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result check_kernel(const struct ll_cu_kernel *kernel, ll_cu_device device)
{
	if (!is_kernel(kernel))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	return device >= 0 && device < sim_cuda.device_count ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_DEVICE;
}

ll_cu_result cuKernelGetAttribute(int *ret_value, enum ll_cu_function_attribute attribute, struct ll_cu_kernel *kernel,
				  ll_cu_device device)
{
	SIM_ENTER();
	ll_cu_result status = check_kernel(kernel, device);
	if (status)
		return status;
	if (!ret_value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	return sim_function_attribute(sim_cuda.devices[device], &kernel->library->ptx, kernel->max_dynamic_shared_bytes,
				      attribute, ret_value);
}

ll_cu_result cuKernelSetAttribute(enum ll_cu_function_attribute attribute, int value, struct ll_cu_kernel *kernel,
				  ll_cu_device device)
{
	SIM_ENTER();
	ll_cu_result status = check_kernel(kernel, device);
	return status ? status : sim_function_set_attribute(attribute, value, &kernel->max_dynamic_shared_bytes);
}

ll_cu_result cuKernelSetCacheConfig(struct ll_cu_kernel *kernel, enum ll_cu_func_cache config, ll_cu_device device)
{
	SIM_ENTER();
	(void)config;
	return check_kernel(kernel, device);
}

ll_cu_result cuKernelGetName(const char **ret_name, struct ll_cu_kernel *kernel)
{
	SIM_ENTER();
	if (!ret_name)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!is_kernel(kernel))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	*ret_name = kernel->entry->name;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuKernelGetParamInfo(struct ll_cu_kernel *kernel, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	SIM_ENTER();
	if (!is_kernel(kernel))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	return sim_function_param(kernel->entry, index, ret_offset, ret_bytes);
}
