/* wrap.c - somebody else's preloaded library: counts allocations and passes them on to whoever comes next. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "abi/cuda.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes);
EXPORT int wrapped_calls(void);
EXPORT void *wrapped_next(void);

static int calls;

int wrapped_calls(void)
{
	return calls;
}

void *wrapped_next(void)
{
	/* Not as a last call: that would be a jump, and the caller of dlsym another one. */
	void *volatile next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	return next;
}

ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	ll_cu_result (*next)(ll_cu_deviceptr *, size_t);
	void *found = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	if (!found)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	memcpy(&next, &found, sizeof next);
	calls++;
	return next(ret_address, bytes);
}
