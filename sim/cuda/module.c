/*
 * Modules: PTX text in, kernels and variables out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "card/process.h"
#include "cuda/local.h"

/* The newest PTX that a driver of this CUDA version takes. */
static unsigned newest_ptx(unsigned cuda_version)
{
	unsigned major = cuda_version / 1000, minor = cuda_version % 1000 / 10;
	return major >= 13 ? 90 + minor : major == 12 ? 80 + (minor > 8 ? minor - 1 : minor) : 70 + minor;
}

static ll_cu_result check_versions(const struct ll_cu_context *context, const struct sim_ptx *ptx, struct ll_err *err)
{
	const struct sim_world *w = sim_cuda.world;
	const struct sim_card *card = &w->cards[context->card];
	unsigned newest = newest_ptx(w->cuda_version);
	if (ptx->version > newest) {
		ll_err_set(err, -EINVAL, "PTX .version %u.%u is newer than this driver's %u.%u", ptx->version / 10,
			   ptx->version % 10, newest / 10, newest % 10);
		return LL_CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	}
	if (ptx->target > card->capability_major * 10 + card->capability_minor) {
		ll_err_set(err, -EINVAL, "PTX .target sm_%u is newer than this card", ptx->target);
		return LL_CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	return LL_CUDA_SUCCESS;
}

static ll_cu_result place_variables(struct ll_cu_module *module)
{
	for (unsigned i = 0; i < module->ptx.variable_count; i++) {
		struct sim_memory memory;
		ll_cu_result status = sim_memory_new(module->context, module->ptx.variables[i].bytes, true, &memory);
		if (status)
			return status;
		module->ptx.variables[i].address = memory.address;
	}
	return LL_CUDA_SUCCESS;
}

void sim_module_forget(struct ll_cu_module *module)
{
	struct sim_world *w = sim_cuda.world;
	struct ll_cu_module **link = &module->context->modules;
	while (*link && *link != module)
		link = &(*link)->next;
	if (*link)
		*link = module->next;
	for (unsigned i = 0; i < module->ptx.variable_count; i++) {
		const struct sim_memory *memory = sim_memory_find(module->ptx.variables[i].address);
		if (memory)
			sim_memory_free(memory);
	}
	while (module->functions) {
		struct ll_cu_function *function = module->functions;
		module->functions = function->next;
		function->magic = 0;
		free(function->old_arguments);
		free(function);
	}
	sim_lock(w);
	sim_module_free(w, module->slot);
	sim_unlock(w);
	sim_ptx_fini(&module->ptx);
	module->magic = 0;
	free(module);
}

ll_cu_result sim_module_check_image(const char *text)
{
	/* Machine code (ELF, or the wrapper of a fat binary) cannot be simulated. */
	if (memcmp(text, "\177ELF", 4) == 0 || memcmp(text, "\x50\xed\x55\xba", 4) == 0 ||
	    memcmp(text, "\xb1\x43\x62\x46", 4) == 0)
		return LL_CUDA_ERROR_NO_BINARY_FOR_GPU;
	return strstr(text, ".version") ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_IMAGE;
}

ll_cu_result sim_module_load(struct ll_cu_context *context, const char *text, struct ll_cu_library *library,
			     struct ll_cu_module **ret_module, struct ll_err *err)
{
	ll_cu_result status = sim_module_check_image(text);
	if (status)
		return status;
	struct sim_ptx ptx;
	int rc = sim_ptx_parse(text, &ptx, err);
	if (rc < 0)
		return rc == -ENOMEM ? LL_CUDA_ERROR_OUT_OF_MEMORY : LL_CUDA_ERROR_INVALID_PTX;
	status = check_versions(context, &ptx, err);
	struct ll_cu_module *module = status ? NULL : calloc(1, sizeof *module);
	if (!module) {
		sim_ptx_fini(&ptx);
		return status ? status : LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	*module = (struct ll_cu_module){.magic = SIM_MAGIC_MODULE, .context = context, .library = library, .ptx = ptx};
	sim_lock(sim_cuda.world);
	module->slot = sim_module_new(sim_cuda.world, sim_cuda.proc);
	sim_unlock(sim_cuda.world);
	module->next = context->modules;
	context->modules = module;
	status = place_variables(module);
	if (status)
		sim_module_forget(module);
	else
		*ret_module = module;
	return status;
}

static ll_cu_result load(const char *text, struct ll_cu_module **ret_module, struct ll_err *err)
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
	ll_cu_result status = load(image, ret_module, &err);
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

ll_cu_result sim_module_function(struct ll_cu_module *module, const char *name, struct ll_cu_function **ret_function)
{
	for (struct ll_cu_function *function = module->functions; function; function = function->next) {
		if (strcmp(function->entry->name, name) == 0) {
			*ret_function = function;
			return LL_CUDA_SUCCESS;
		}
	}
	for (unsigned i = 0; i < module->ptx.entry_count; i++) {
		if (strcmp(module->ptx.entries[i].name, name) != 0)
			continue;
		struct ll_cu_function *function = calloc(1, sizeof *function);
		if (!function)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		function->magic = SIM_MAGIC_FUNCTION;
		function->module = module;
		function->entry = &module->ptx.entries[i];
		function->next = module->functions;
		module->functions = function;
		*ret_function = function;
		return LL_CUDA_SUCCESS;
	}
	return LL_CUDA_ERROR_NOT_FOUND;
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
	if (!name)
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
