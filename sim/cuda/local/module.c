/*
 * Modules: make kernels and variables from PTX text.
 */
#include "cuda/local/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "card/process.h"
#include "cuda/local/allocations.h"
#include "cuda/local/mps.h"
#include "cuda/local/state.h"

/* Returns the newest PTX version that a driver of this CUDA version accepts. */
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

/* Code that launches kernels from the card calls this function of the device's runtime, or its second version. */
static bool launches_children(const char *text)
{
	return strstr(text, "cudaLaunchDevice") || strstr(text, "__cudaCDP2LaunchDevice");
}

ll_cu_result sim_module_load(struct ll_cu_context *context, const char *text, struct ll_cu_library *library,
			     struct ll_cu_module **ret_module, struct ll_err *err)
{
	ll_cu_result status = sim_module_check_image(text);
	if (!status && sim_cuda_is_mps_client() && launches_children(text))
		status = LL_CUDA_ERROR_CDP_NOT_SUPPORTED;
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

/* Both kinds of handle begin with their magic number. */
bool sim_is_function(const struct ll_cu_function *handle)
{
	return handle && (handle->magic == SIM_MAGIC_FUNCTION || handle->magic == SIM_MAGIC_KERNEL);
}

ll_cu_result sim_module_in(struct ll_cu_context *context, struct ll_cu_library *library,
			   struct ll_cu_module **ret_module)
{
	for (struct ll_cu_module *module = context->modules; module; module = module->next) {
		if (module->library == library) {
			*ret_module = module;
			return LL_CUDA_SUCCESS;
		}
	}
	return sim_module_load(context, library->text, library, ret_module, NULL);
}

ll_cu_result sim_function_in(struct ll_cu_context *context, struct ll_cu_function *handle,
			     struct ll_cu_function **ret_function)
{
	if (!sim_is_function(handle))
		return LL_CUDA_ERROR_INVALID_HANDLE;
	if (handle->magic == SIM_MAGIC_FUNCTION) {
		*ret_function = handle;
		return LL_CUDA_SUCCESS;
	}
	const struct ll_cu_kernel *kernel = (const void *)handle;
	struct ll_cu_module *module;
	ll_cu_result status = sim_module_in(context, kernel->library, &module);
	return status ? status : sim_module_function(module, kernel->entry->name, ret_function);
}
