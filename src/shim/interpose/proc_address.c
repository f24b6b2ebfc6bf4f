/*
 * proc_address.c - replaces cuGetProcAddress. It first calls the driver. If the driver returns a function that the
 * library hooks, the program gets the hook. The driver's status is never changed. If the driver finds no function, the
 * program gets none.
 *
 * The returned function may be in another library, if libcuda.so.1 only forwards to it (as on WSL), or in no library.
 * So its location does not decide.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/interpose/hook.h"
#include "shim/interpose/hooks.h"

enum { PER_THREAD_SINCE = 7000, SYMBOL_SIZE = 128 };

static const struct version {
	const char *symbol;
	int since;
} versions[] = {
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) {#symbol, since},
#include "abi/cuda.def"
};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

/* The driver's answer. */
struct answer {
	void *function;
	bool has_home;
	bool is_elsewhere;         /* `home` is not the driver that the hooks call */
	struct ll_elf_object home; /* the object that contains the function */
};

/* Returns whether the symbol is the plain name or a variant of it. Examples: cuMemAlloc_v2 is a variant of cuMemAlloc,
 * and cuLaunchKernel_ptsz of cuLaunchKernel. */
static bool is_variant(const char *symbol, const char *name)
{
	const char *rest = ll_text_after(symbol, name);
	if (!rest)
		return false;
	const char *digits = ll_text_after(rest, "_v");
	if (digits && *digits >= '0' && *digits <= '9') {
		while (*digits >= '0' && *digits <= '9')
			digits++;
		rest = digits;
	}
	return !*rest || ll_text_is_same(rest, "_ptsz") || ll_text_is_same(rest, "_ptds");
}

/* Returns the driver's function of the hook's symbol; NULL: the driver does not have it. Binds the driver. */
static void *real_of(const struct ll_hook *hook)
{
	const void *table = hook->library == LL_REAL_CUDA ? (const void *)ll_real() : (const void *)ll_real_nvml();
	void (*function)(void);
	memcpy(&function, (const char *)table + hook->slot, sizeof function);
	return ll_real_is_missing(function) ? NULL : (void *)(uintptr_t)function;
}
/* Returns the hook of a variant of this name, if the answer is its function. name NULL: any hook. */
static const struct ll_hook *hook_at(const char *name, const struct answer *answer)
{
	for (size_t i = 0; i < ll_hook_count; i++) {
		const struct ll_hook *hook = &ll_hooks[i];
		if (hook->library != LL_REAL_CUDA || (name && !is_variant(hook->symbol, name)))
			continue;
		/* A driver that calls itself through the loader's table returns the hook. */
		if (real_of(hook) == answer->function || (void *)(uintptr_t)hook->function == answer->function ||
		    (answer->is_elsewhere && ll_elf_function(&answer->home, hook->symbol) == answer->function))
			return hook;
	}
	return NULL;
}

/* Returns the version number of a symbol of this name: 2 for cuMemAlloc_v2, 1 for cuInit, 0 if the name is another one.
 */
static unsigned version_in(const char *symbol, const char *name)
{
	const char *suffix = ll_text_after(symbol, name);
	if (!suffix || !*suffix)
		return suffix ? 1 : 0;
	return strncmp(suffix, "_v", 2) == 0 ? (unsigned)strtoul(suffix + 2, NULL, 10) : 0;
}

/* Returns the symbol that the name means in this version; NULL: there is no such function. A name without versions
 * means the symbol of this name in each version, and *ret_since is 0. */
static const char *symbol_of(const char *name, int version, int *ret_since)
{
	const char *symbol = NULL;
	bool has_versions = false;
	*ret_since = 0;
	for (size_t i = 0; i < VERSIONS; i++) {
		unsigned number = version_in(versions[i].symbol, name);
		has_versions |= number > 1;
		if (!number || versions[i].since > version)
			continue;
		symbol = versions[i].symbol;
		*ret_since = versions[i].since;
	}
	if (has_versions)
		return symbol;
	*ret_since = 0;
	return name;
}

static const struct ll_hook *hook_named(const char *symbol, const char *suffix)
{
	char text[SYMBOL_SIZE];
	int length = snprintf(text, sizeof text, "%s%s", symbol, suffix);
	return length < SYMBOL_SIZE ? ll_hook_find(text) : NULL;
}

/* Returns whether the object has a later variant of the name than the last row. A newer driver may mean this variant,
 * and the library does not know its signature. */
static bool is_outdated(const struct ll_elf_object *object, const char *name, const char *symbol, int since)
{
	char next[SYMBOL_SIZE];
	for (size_t i = 0; since && i < VERSIONS; i++) {
		if (version_in(versions[i].symbol, name) && versions[i].since > since)
			return false;
	}
	snprintf(next, sizeof next, "%.100s_v%u", name, version_in(symbol, name) + 1);
	return ll_elf_function(object, next) != NULL;
}

/* Returns the hook that the name means by abi/cuda.def. A driver that forwards may export fewer or more functions
 * than the library to which it forwards. */
static const struct ll_hook *hook_meant(const struct answer *answer, const char *name, int version, bool is_per_thread)
{
	const struct ll_hook *hook = NULL;
	struct ll_elf_object driver;
	int since;
	const char *symbol = symbol_of(name, version, &since);
	if (!symbol || (answer->has_home && is_outdated(&answer->home, name, symbol, since)) ||
	    (ll_real_object(LL_REAL_CUDA, &driver) && is_outdated(&driver, name, symbol, since)))
		return NULL;
	if (is_per_thread && version >= PER_THREAD_SINCE) {
		hook = hook_named(symbol, "_ptsz");
		hook = hook ? hook : hook_named(symbol, "_ptds");
	}
	return hook ? hook : hook_named(symbol, "");
}

/*
 * Returns the hook that the program gets instead of the driver's answer to this name, version and kind of default
 * stream. NULL: the program gets the answer itself. The address identifies the function best. There are three cases:
 *
 * 1. The address is the exported address of a hooked variant of the name. The result is the hook of the variant.
 * 2. The address is that of another hooked function, which the name now means, and the object does not export the name
 *    itself at this address (the linker may have merged equal functions). The result is the hook of that function.
 * 3. The address is not exported by the object. The rows of abi/cuda.def give the hook by name, version and stream.
 *
 * Driver 580 only gave the first kind of answer in 30 518 answers; its 682 symbols have 682 addresses.
 */
static const struct ll_hook *hook_instead(const struct answer *answer, const char *name, int version,
					  bool is_per_thread)
{
	const struct ll_elf_object *home = answer->has_home ? &answer->home : NULL;
	const struct ll_hook *hook = hook_at(name, answer);
	if (hook)
		return hook;
	hook = hook_at(NULL, answer);
	if (hook)
		return home && ll_elf_function(home, name) == answer->function ? NULL : hook;
	hook = hook_meant(answer, name, version, is_per_thread);
	return hook && home && ll_elf_exports(home, answer->function) ? NULL : hook;
}

static void replace_answer(const char *name, void **function, int version, bool is_per_thread)
{
	if (ll_reentry_is_inside() || !name || !function || !*function)
		return;
	struct ll_elf_object driver;
	struct answer answer = {.function = *function};
	answer.has_home = ll_elf_find_holding(answer.function, &answer.home);
	answer.is_elsewhere =
	    answer.has_home && ll_real_object(LL_REAL_CUDA, &driver) && !ll_elf_is_same(&answer.home, &driver);
	if (answer.is_elsewhere)
		ll_real_complete(LL_REAL_CUDA, &answer.home);
	const struct ll_hook *hook = hook_instead(&answer, name, version, is_per_thread);
	if (hook)
		*function = (void *)(uintptr_t)hook->function;
}

LL_HOOK_EXPORT ll_cu_result cuGetProcAddress(const char *symbol, void **ret_function, int version, uint64_t flags)
{
	ll_cu_result status = ll_real()->cuGetProcAddress(symbol, ret_function, version, flags);
	if (status == LL_CUDA_SUCCESS)
		replace_answer(symbol, ret_function, version, flags & LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	return status;
}

LL_HOOK_EXPORT ll_cu_result cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, uint64_t flags,
						enum ll_cu_proc_address_result *ret_status)
{
	ll_cu_result status = ll_real()->cuGetProcAddress_v2(symbol, ret_function, version, flags, ret_status);
	if (status == LL_CUDA_SUCCESS)
		replace_answer(symbol, ret_function, version, flags & LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	return status;
}

/* Programs that are built for per-thread default streams call this function. Without a flag it returns the variants for
 * these streams. */
LL_HOOK_EXPORT ll_cu_result cuGetProcAddress_v2_ptsz(const char *symbol, void **ret_function, int version,
						     uint64_t flags, enum ll_cu_proc_address_result *ret_status)
{
	ll_cu_result status = ll_real()->cuGetProcAddress_v2_ptsz(symbol, ret_function, version, flags, ret_status);
	if (status == LL_CUDA_SUCCESS)
		replace_answer(symbol, ret_function, version, !(flags & LL_CU_GET_PROC_ADDRESS_LEGACY_STREAM));
	return status;
}
