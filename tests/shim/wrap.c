/* wrap.c - somebody else's preloaded library: counts allocations and passes them on to whoever comes next. Looks libc's
 * functions up while it opens a library, as compute-sanitizer's does under a lock. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes);
EXPORT int wrapped_calls(void);
EXPORT void *wrapped_next(void);
EXPORT void *dlopen(const char *file, int mode);

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

void *dlopen(const char *file, int mode)
{
	static bool is_opening;
	void *(*look_up)(void *, const char *), *(*next)(const char *, int);
	if (is_opening)
		abort(); /* a lock would be waited for without an end */
	is_opening = true;
	void *volatile found = dlsym(RTLD_NEXT, "dlsym");
	memcpy(&look_up, (void *)&found, sizeof look_up);
	found = dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.34");
	found = found ? found : look_up(RTLD_NEXT, "dlopen");
	memcpy(&next, (void *)&found, sizeof next);
	void *volatile handle = next(file, mode);
	is_opening = false;
	return handle;
}
