/*
 * proc_address.c - stands in front of cuGetProcAddress. The driver is asked first. If its answer is a function that the
 * library hooks, the program gets the hook. The driver's status, and whether it finds a function, are never changed.
 *
 * The answer may lie in another library than libcuda.so.1, which then only forwards (as on WSL), or in none at all. So
 * where it lies decides nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/interpose/hook.h"
#include "shim/interpose/hooks.h"

enum { PER_THREAD_SINCE = 7000, SYMBOL_SIZE = 128 };

static const struct {
	const char *name;
	int since;
	const char *symbol;
} versions[] = {
#define LL_VERSION(name, since, symbol) {#name, since, #symbol},
#include "shim/interpose/hooks_versions.def"
};

/* What the driver answered with. */
struct answer {
	void *function;
	bool has_home;
	bool is_elsewhere;         /* its home is not the driver that the hooks call */
	struct ll_elf_object home; /* the object that it lies in */
};

/* Whether the answer is the function of that hook: the driver's, or the hook itself, because a driver that calls itself
 * through the loader's table answers with a hook already. */
static bool is_answer(const struct ll_hook *hook, const struct answer *answer)
{
	return ll_hook_real(hook) == answer->function || ll_hook_address(hook) == answer->function ||
	       (answer->is_elsewhere && ll_elf_function(&answer->home, hook->symbol) == answer->function);
}

/* Returns the hook of a variant of that name, or of any name if it is NULL. */
static const struct ll_hook *hook_at(const char *name, const struct answer *answer)
{
	for (size_t i = 0; i < ll_hook_count; i++) {
		const struct ll_hook *hook = &ll_hooks[i];
		if (hook->library != LL_REAL_CUDA || (name && !ll_hook_is_variant(hook->symbol, name)))
			continue;
		if (is_answer(hook, answer))
			return hook;
	}
	return NULL;
}

/* Returns the symbol that the name means in that version; NULL: there is no such function. *ret_since is 0 for a name
 * without rows. */
static const char *symbol_of(const char *name, int version, int *ret_since)
{
	const char *symbol = name;
	*ret_since = 0;
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		if (strcmp(versions[i].name, name) != 0)
			continue;
		if (symbol == name)
			symbol = NULL;
		if (versions[i].since > version)
			continue;
		symbol = versions[i].symbol;
		*ret_since = versions[i].since;
	}
	return symbol;
}

static const struct ll_hook *hook_named(const char *symbol, const char *suffix)
{
	char text[SYMBOL_SIZE];
	int length = snprintf(text, sizeof text, "%s%s", symbol, suffix);
	return length < SYMBOL_SIZE ? ll_hook_find(text) : NULL;
}

/* The version in a symbol: 2 of cuMemAlloc_v2, 1 of cuInit. */
static unsigned version_in(const char *symbol, const char *name)
{
	const char *suffix = symbol + strlen(name);
	return strncmp(suffix, "_v", 2) == 0 ? (unsigned)strtoul(suffix + 2, NULL, 10) : 1;
}

/* Whether the object has a later variant of the name than the last row. A newer driver may mean that variant, whose
 * signature the library does not know. */
static bool is_outdated(const struct ll_elf_object *object, const char *name, const char *symbol, int since)
{
	char next[SYMBOL_SIZE];
	if (strncmp(symbol, name, strlen(name)) != 0)
		return false;
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		if (strcmp(versions[i].name, name) == 0 && versions[i].since > since)
			return false;
	}
	snprintf(next, sizeof next, "%.100s_v%u", name, version_in(symbol, name) + 1);
	return ll_elf_function(object, next) != NULL;
}

/* A driver that forwards may export less, or more, than what it forwards to. */
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
 * Returns the hook to hand out instead of the driver's answer to that name, version and kind of default stream; NULL:
 * the answer itself. The address says best which function it is (driver 580 answers with exported addresses only,
 * hooks_versions.def):
 *
 * 1. it is the exported address of a hooked variant of that name: its hook;
 * 2. it is another hooked function's, which that name has come to mean, and the object does not export the name itself
 *    at that address (functions that do the same may be folded into one): that one's hook;
 * 3. it is nothing that the object exports: by name, version and stream, as hooks_versions.def has them.
 *
 * Driver 580 gives the first kind of answer alone.
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

static void *hook_or_found(const char *name, void *found, int version, bool is_per_thread)
{
	struct ll_elf_object driver;
	struct answer answer = {.function = found};
	answer.has_home = ll_elf_find_holding(found, &answer.home);
	answer.is_elsewhere =
	    answer.has_home && ll_real_object(LL_REAL_CUDA, &driver) && !ll_elf_is_same(&answer.home, &driver);
	if (answer.is_elsewhere)
		ll_real_complete(LL_REAL_CUDA, &answer.home);
	const struct ll_hook *hook = hook_instead(&answer, name, version, is_per_thread);
	return hook ? ll_hook_address(hook) : found;
}

static void replace_answer(const char *name, void **function, int version, bool is_per_thread)
{
	if (!ll_reentry_is_inside() && name && function && *function)
		*function = hook_or_found(name, *function, version, is_per_thread);
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

/* Programs built for per-thread default streams call this. Without a flag it means the variants for these streams. */
LL_HOOK_EXPORT ll_cu_result cuGetProcAddress_v2_ptsz(const char *symbol, void **ret_function, int version,
						     uint64_t flags, enum ll_cu_proc_address_result *ret_status)
{
	ll_cu_result status = ll_real()->cuGetProcAddress_v2_ptsz(symbol, ret_function, version, flags, ret_status);
	if (status == LL_CUDA_SUCCESS)
		replace_answer(symbol, ret_function, version, !(flags & LL_CU_GET_PROC_ADDRESS_LEGACY_STREAM));
	return status;
}
