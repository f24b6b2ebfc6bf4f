/* A library whose constructor, before the program begins, finds the driver and takes all the memory that it gets. */
#include <dlfcn.h>

#include "case.h"

#define TAKE(function, name)                                                                                           \
	do {                                                                                                           \
		void *found_ = dlsym(library, name);                                                                   \
		NEED(found_);                                                                                          \
		memcpy(&(function), &found_, sizeof found_);                                                           \
	} while (0)

__attribute__((constructor)) static void take_early(void)
{
	__typeof__(&cuInit) init;
	__typeof__(&cuDevicePrimaryCtxRetain) retain;
	__typeof__(&cuCtxSetCurrent) set;
	__typeof__(&cuMemAlloc_v2) alloc;
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	size_t took = 0;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	NEED(library);
	TAKE(init, "cuInit");
	TAKE(retain, "cuDevicePrimaryCtxRetain");
	TAKE(set, "cuCtxSetCurrent");
	TAKE(alloc, "cuMemAlloc_v2");
	TRY(init(0));
	TRY(retain(&context, 0));
	TRY(set(context));
	for (size_t each = 64; each >= 2; each /= 2) {
		for (int i = 0; i < 128 && MADE(alloc(&address, each * MIB)); i++)
			took += each;
	}
	printf("full %zu\n", took);
	fflush(stdout);
	stay();
}
