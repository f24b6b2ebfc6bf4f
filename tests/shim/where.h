/*
 * where.h - whose function is it: the question of every test here. A way in leads to the shim when the pointer that a
 * program gets by it lies in libloadline-cuda.so.
 */
#ifndef LOADLINE_TESTS_SHIM_WHERE_H
#define LOADLINE_TESTS_SHIM_WHERE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../sim/process.h"

static inline bool is_in(const void *function, const char *file)
{
	Dl_info info;
	return function && dladdr(function, &info) && info.dli_fname && strstr(info.dli_fname, file);
}

static inline bool is_in_shim(const void *function)
{
	return is_in(function, "/libloadline-cuda.so");
}

/* Where is_hooked says so it is our function of exactly that symbol. The program's own global scope knows ours first.
 */
static inline bool is_hook(const void *function, const char *symbol)
{
	return is_in_shim(function) && function == dlsym(RTLD_DEFAULT, symbol);
}

typedef ll_cu_result (*get_proc_v1)(const char *symbol, void **ret_function, int version, uint64_t flags);
typedef ll_cu_result (*get_proc_v2)(const char *symbol, void **ret_function, int version, uint64_t flags,
				    enum ll_cu_proc_address_result *ret_status);

static inline get_proc_v1 as_v1(void *address)
{
	get_proc_v1 function;
	memcpy(&function, &address, sizeof function);
	return function;
}

static inline get_proc_v2 as_v2(void *address)
{
	get_proc_v2 function;
	memcpy(&function, &address, sizeof function);
	return function;
}

#endif
