/* asker.c - somebody else's library that looks functions up: from its own place in the loader's order. Some of these
 * are linked to the driver, some have a function of the driver's name. */
#include <dlfcn.h>
#include <stddef.h>

#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void *ask(void *handle, const char *name);
EXPORT void *ask_version(void *handle, const char *name, const char *version);
EXPORT int use(void);

/* Not as a last call: that would be a jump, and the caller of dlsym another one. */
void *ask(void *handle, const char *name)
{
	void *volatile found = dlsym(handle, name);
	return found;
}

void *ask_version(void *handle, const char *name, const char *version)
{
	void *volatile found = dlvsym(handle, name, version);
	return found;
}

#ifdef ASKER_WRAPS
EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	*ret_address = bytes;
	return LL_CUDA_SUCCESS;
}
#endif

#ifdef ASKER_IS_LINKED
int use(void)
{
	int version;
	return cuDriverGetVersion(&version) || nvmlSystemGetDriverVersion(NULL, 0);
}
#endif
