#include "shim/hooks.h"

#include <stdint.h>
#include <string.h>

/* A missing function is answered by one that returns a status (real.c), whatever the arguments. */
#define LL_HOOK(symbol) _Static_assert(__builtin_types_compatible_p(symbol##_answer, ll_cu_result), #symbol);
#define LL_HOOK_NVML(symbol) _Static_assert(__builtin_types_compatible_p(symbol##_answer, ll_nvml_result), #symbol);
#include "shim/hooks.def"

const struct ll_hook ll_hooks[] = {
#define LL_HOOK(symbol) {#symbol, (void (*)(void))symbol, offsetof(struct ll_real, symbol), LL_REAL_CUDA},
#define LL_HOOK_NVML(symbol) {#symbol, (void (*)(void))symbol, offsetof(struct ll_real_nvml, symbol), LL_REAL_NVML},
#include "shim/hooks.def"
};

const size_t ll_hook_count = sizeof ll_hooks / sizeof ll_hooks[0];

const struct ll_hook *ll_hook_find(const char *symbol)
{
	/* Most look-ups in a program are for something else. */
	if (strncmp(symbol, "cu", 2) != 0 && strncmp(symbol, "nvml", 4) != 0)
		return NULL;
	for (size_t i = 0; i < ll_hook_count; i++) {
		if (strcmp(ll_hooks[i].symbol, symbol) == 0)
			return &ll_hooks[i];
	}
	return NULL;
}

bool ll_hook_is_variant(const char *symbol, const char *name)
{
	size_t length = strlen(name);
	if (strncmp(symbol, name, length) != 0)
		return false;
	const char *rest = symbol + length;
	if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '1' && rest[2] <= '9')
		rest += 2 + strspn(rest + 2, "0123456789");
	return !*rest || strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
}

void *ll_hook_address(const struct ll_hook *hook)
{
	return (void *)(uintptr_t)hook->function;
}

void *ll_hook_real(const struct ll_hook *hook)
{
	const void *table = hook->library == LL_REAL_CUDA ? (const void *)ll_real() : (const void *)ll_real_nvml();
	void (*function)(void);
	memcpy(&function, (const char *)table + hook->slot, sizeof function);
	return ll_real_is_missing(function) ? NULL : (void *)(uintptr_t)function;
}
