/* whole.c - a library that is not named as the driver's, and has what every driver has. It passes calls on to the
 * library that LOADLINE_FORWARD_TO names. */
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

#define PASS(symbol, params, ...)                                                                                      \
	EXPORT ll_cu_result symbol params                                                                              \
	{                                                                                                              \
		__typeof__(&symbol) function;                                                                          \
		void *found = find(#symbol);                                                                           \
		memcpy(&function, &found, sizeof function);                                                            \
		return found ? function(__VA_ARGS__) : LL_CUDA_ERROR_NOT_SUPPORTED;                                    \
	}

PASS(cuInit, (unsigned int flags), flags)
PASS(cuDriverGetVersion, (int *ret_version), ret_version)
PASS(cuDeviceGetCount, (int *ret_count), ret_count)
PASS(cuCtxCreate_v2, (struct ll_cu_context * *ret_context, unsigned int flags, ll_cu_device device), ret_context, flags,
     device)
PASS(cuMemAlloc_v2, (ll_cu_deviceptr * ret_address, size_t bytes), ret_address, bytes)
