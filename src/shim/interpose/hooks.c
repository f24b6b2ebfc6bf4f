#include "shim/interpose/hooks.h"

#include <stdint.h>
#include <string.h>

#include "shim/interpose/text.h"

const struct ll_hook *ll_hook_find(const char *symbol)
{
	/* Most names that a program looks up do not belong to the driver. */
	if (!ll_text_after(symbol, "cu") && !ll_text_after(symbol, "nvml"))
		return NULL;
	for (size_t i = 0; i < ll_hook_count; i++) {
		if (ll_text_is_same(ll_hooks[i].symbol, symbol))
			return &ll_hooks[i];
	}
	return NULL;
}

bool ll_hook_is_variant(const char *symbol, const char *name)
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
