/*
 * forward.c - a libcuda.so.1 that only forwards, as that of WSL: it opens another library, and answers with that
 * library's functions. It exports what a program needs to begin. The trial of limits opens it in the driver's place
 * (trial.c), and tests do.
 *
 * It forwards to the library that LOADLINE_FORWARD_TO names, or to the driver. It is not itself named as the driver, so
 * that the loader does not take it for that.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda_prototypes.h"

#define EXPORT __attribute__((visibility("default")))

static void *find(const char *symbol)
{
	static void *library;
	const char *name = getenv("LOADLINE_FORWARD_TO");
	if (!library)
		library = dlopen(name ? name : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
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
