/*
 * cuGetProcAddress: returns the driver's functions by plain name and CUDA version.
 */
#include <stdio.h>
#include <string.h>

#include "card/hide.h"
#include "cuda/enter.h"
#include "cuda/local/versions.h"
#include "cuda/per_thread.h"

struct proc {
	const char *symbol;
	void (*function)(void);
	void (*per_thread)(void); /* NULL: there is no such variant */
};

static const struct proc procs[] = {
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) {#symbol, (void (*)(void))symbol, NULL},
#include "abi/cuda.def"
#define LL_CUDA_PER_THREAD(symbol, suffix, params, args) {#symbol, NULL, (void (*)(void))symbol##suffix},
#include "abi/cuda_per_thread.def"
};

static void (*find_function(const char *symbol, bool per_thread))(void)
{
	void (*function)(void) = NULL;
	for (size_t i = 0; i < sizeof procs / sizeof procs[0]; i++) {
		if (strcmp(procs[i].symbol, symbol) != 0)
			continue;
		if (per_thread && procs[i].per_thread)
			return procs[i].per_thread;
		if (procs[i].function)
			function = procs[i].function;
	}
	return function;
}

/* In programs that are built for per-thread default streams (cuGetProcAddress_v2_ptsz), no flag means these variants.
 */
static ll_cu_result look_up(const char *name, void **ret_function, int version, uint64_t flags,
			    enum ll_cu_proc_address_result *ret_status)
{
	enum ll_cu_proc_address_result status;
	if (!flags && sim_null_is_per_thread)
		flags = LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	if (!name || !ret_function || flags > LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (sim_cuda.world && version > (int)sim_cuda.world->cuda_version)
		return LL_CUDA_ERROR_INVALID_VALUE;
	const char *symbol = sim_version_symbol(name, version, &status);
	bool per_thread = flags == LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	void (*function)(void) = symbol ? find_function(symbol, per_thread) : NULL;
	if (symbol && sim_cuda.world && sim_is_hidden(sim_cuda.world, symbol))
		function = NULL;
	if (!function && status == LL_CU_GET_PROC_ADDRESS_SUCCESS)
		status = LL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (ret_status)
		*ret_status = status;
	memcpy(ret_function, &function, sizeof function);
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, uint64_t flags,
				 enum ll_cu_proc_address_result *ret_status)
{
	return look_up(symbol, ret_function, version, flags, ret_status);
}

ll_cu_result cuGetProcAddress(const char *symbol, void **ret_function, int version, uint64_t flags)
{
	enum ll_cu_proc_address_result found;
	ll_cu_result status = look_up(symbol, ret_function, version, flags, &found);
	return !status && found != LL_CU_GET_PROC_ADDRESS_SUCCESS ? LL_CUDA_ERROR_NOT_FOUND : status;
}
