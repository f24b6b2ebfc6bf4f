/*
 * Modules: load, unload, and find their functions and variables.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "cuda/enter.h"
#include "cuda/local/current.h"
#include "cuda/local/module.h"

static ll_cu_result load_in_current(const char *text, struct ll_cu_module **ret_module, struct ll_err *err)
{
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	return status ? status : sim_module_load(context, text, NULL, ret_module, err);
}

ll_cu_result cuModuleLoadDataEx(struct ll_cu_module **ret_module, const void *image, unsigned int option_count,
				enum ll_cu_jit_option *options, void **values)
{
	SIM_ENTER();
	if (!ret_module || !image || (option_count && (!options || !values)))
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct ll_err err = {0};
	sim_cuda_lock();
	ll_cu_result status = load_in_current(image, ret_module, &err);
	sim_cuda_unlock();
	char *log = NULL;
	size_t log_size = 0;
	for (unsigned i = 0; i < option_count; i++) {
		if (options[i] == LL_CU_JIT_ERROR_LOG_BUFFER)
			log = values[i];
		else if (options[i] == LL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			log_size = (size_t)(uintptr_t)values[i];
	}
	if (log && log_size)
		snprintf(log, log_size, "%s", err.text);
	return status;
}

ll_cu_result cuModuleLoadData(struct ll_cu_module **ret_module, const void *image)
{
	return cuModuleLoadDataEx(ret_module, image, 0, NULL, NULL);
}

ll_cu_result cuModuleLoadFatBinary(struct ll_cu_module **ret_module, const void *image)
{
	return cuModuleLoadDataEx(ret_module, image, 0, NULL, NULL);
}

ll_cu_result cuModuleLoad(struct ll_cu_module **ret_module, const char *path)
{
	SIM_ENTER();
	if (!ret_module || !path)
		return LL_CUDA_ERROR_INVALID_VALUE;
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	if (!file || fseek(file, 0, SEEK_END) < 0)
		return LL_CUDA_ERROR_FILE_NOT_FOUND;
	long size = ftell(file);
	LL_SCOPE_FREE char *text = size < 0 ? NULL : calloc(1, (size_t)size + 4);
	if (!text || fseek(file, 0, SEEK_SET) < 0 || fread(text, 1, (size_t)size, file) != (size_t)size)
		return LL_CUDA_ERROR_FILE_NOT_FOUND;
	return cuModuleLoadDataEx(ret_module, text, 0, NULL, NULL);
}

ll_cu_result cuModuleUnload(struct ll_cu_module *module)
{
	SIM_ENTER();
	if (!module || module->magic != SIM_MAGIC_MODULE)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS && module->library)
		status = LL_CUDA_ERROR_NOT_PERMITTED;
	else if (status == LL_CUDA_SUCCESS)
		sim_module_forget(module);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuModuleGetFunction(struct ll_cu_function **ret_function, struct ll_cu_module *module, const char *name)
{
	SIM_ENTER();
	if (!ret_function || !name)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!module || module->magic != SIM_MAGIC_MODULE)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_lock();
	struct ll_cu_context *context;
	ll_cu_result status = sim_current(&context);
	if (status == LL_CUDA_SUCCESS)
		status = sim_module_function(module, name, ret_function);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuModuleGetGlobal_v2(ll_cu_deviceptr *ret_address, size_t *ret_bytes, struct ll_cu_module *module,
				  const char *name)
{
	SIM_ENTER();
	if (!name || (!ret_address && !ret_bytes))
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!module || module->magic != SIM_MAGIC_MODULE)
		return LL_CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < module->ptx.variable_count; i++) {
		const struct sim_ptx_variable *variable = &module->ptx.variables[i];
		if (strcmp(variable->name, name) != 0)
			continue;
		if (ret_address)
			*ret_address = variable->address;
		if (ret_bytes)
			*ret_bytes = variable->bytes;
		return LL_CUDA_SUCCESS;
	}
	return LL_CUDA_ERROR_NOT_FOUND;
}
