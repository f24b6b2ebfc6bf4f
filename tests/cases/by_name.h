/* by_name.h - for the programs of this folder that open the driver themselves, and are not linked to it. */
#ifndef LOADLINE_TESTS_CASES_BY_NAME_H
#define LOADLINE_TESTS_CASES_BY_NAME_H

#include <dlfcn.h>

#include "case.h"

#define FIND(library, function, name)                                                                                  \
	do {                                                                                                           \
		void *found_ = dlsym(library, name);                                                                   \
		if (!found_)                                                                                           \
			GIVE_UP("no %s: %s", name, dlerror());                                                         \
		memcpy(&(function), &found_, sizeof found_);                                                           \
	} while (0)

/* Takes all the memory that it gets, by the functions of the driver with that file name. Returns how much, in MiB. */
static inline size_t take_by_name(const char *file)
{
	__typeof__(&cuInit) init;
	__typeof__(&cuDevicePrimaryCtxRetain) retain;
	__typeof__(&cuCtxSetCurrent) set;
	__typeof__(&cuMemAlloc_v2) alloc;
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	size_t took = 0;
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		GIVE_UP("%s", dlerror());
	FIND(library, init, "cuInit");
	FIND(library, retain, "cuDevicePrimaryCtxRetain");
	FIND(library, set, "cuCtxSetCurrent");
	FIND(library, alloc, "cuMemAlloc_v2");
	TRY(init(0));
	TRY(retain(&context, 0));
	TRY(set(context));
	for (size_t each = 64; each >= 2; each /= 2) {
		for (int i = 0; i < 128 && MADE(alloc(&address, each * MIB)); i++)
			took += each;
	}
	return took;
}

#endif
