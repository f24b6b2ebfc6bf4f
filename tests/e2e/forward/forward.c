/*
 * forward.c - a libcuda.so.1 that only forwards, as that of WSL: it opens another library, which LOADLINE_FORWARD_TO
 * names, and answers with that library's functions. It exports what a program needs to begin.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_prototypes.h"

#define EXPORT __attribute__((visibility("default")))

static void *find(const char *symbol)
{
	static void *library;
	if (!library)
		library = dlopen(getenv("LOADLINE_FORWARD_TO"), RTLD_LAZY | RTLD_LOCAL);
	/* Not as a last call: that would be a jump, and the caller of dlsym another one. */
	void *volatile found = library ? dlsym(library, symbol) : NULL;
	return found;
}

#define FORWARD(symbol, params, ...)                                                                                   \
	EXPORT ll_cu_result symbol params                                                                              \
	{                                                                                                              \
		__typeof__(&symbol) function;                                                                          \
		void *found = find(#symbol);                                                                           \
		memcpy(&function, &found, sizeof function);                                                            \
		return found ? function(__VA_ARGS__) : LL_CUDA_ERROR_NOT_SUPPORTED;                                    \
	}

FORWARD(cuInit, (unsigned int flags), flags)
FORWARD(cuGetProcAddress, (const char *symbol, void **ret_function, int version, uint64_t flags), symbol, ret_function,
	version, flags)
FORWARD(cuGetProcAddress_v2,
	(const char *symbol, void **ret_function, int version, uint64_t flags,
	 enum ll_cu_proc_address_result *ret_status),
	symbol, ret_function, version, flags, ret_status)
#ifdef FORWARDS_ALL
FORWARD(cuDeviceGet, (ll_cu_device * ret_device, int ordinal), ret_device, ordinal)
FORWARD(cuDriverGetVersion, (int *ret_version), ret_version)
FORWARD(cuDevicePrimaryCtxRetain, (struct ll_cu_context * *ret_context, ll_cu_device device), ret_context, device)
FORWARD(cuCtxGetDevice, (ll_cu_device * ret_device), ret_device)
FORWARD(cuMemAlloc_v2, (ll_cu_deviceptr * ret_address, size_t bytes), ret_address, bytes)
#endif
