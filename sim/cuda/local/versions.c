#include "cuda/local/versions.h"

#include <string.h>

static const struct version {
	const char *symbol;
	int since;
} versions[] = {
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) {#symbol, since},
#include "abi/cuda.def"
};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

/* The real driver has these from 13.1 and 13.2 on. This driver reports 13.0, and has them. */
static bool is_early(const char *symbol)
{
	static const char *const early[] = {"cuMulticastBindMem_v2", "cuMulticastBindAddr_v2",
					    "cuMemcpyWithAttributesAsync", "cuMemcpy3DWithAttributesAsync"};
	for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
		if (strcmp(early[i], symbol) == 0)
			return true;
	}
	return false;
}

/* Whether the symbol is one that the plain name may mean: the name, and perhaps a version. */
static bool has_name(const char *symbol, const char *name)
{
	size_t length = strlen(name);
	const char *rest = symbol + length;
	return strncmp(symbol, name, length) == 0 &&
	       (!*rest || (strncmp(rest, "_v", 2) == 0 && strspn(rest + 2, "0123456789") == strlen(rest + 2)));
}

const char *sim_version_symbol(const char *name, int version, enum ll_cu_proc_address_result *ret_status)
{
	const char *best = NULL;
	bool is_known = false;
	int best_since = 0;
	for (size_t i = 0; i < VERSIONS; i++) {
		const char *symbol = versions[i].symbol;
		if (!has_name(symbol, name))
			continue;
		is_known = true;
		bool is_too_new = versions[i].since > version && !(is_early(symbol) && strcmp(symbol, name) == 0);
		if (is_too_new || versions[i].since < best_since)
			continue;
		best = symbol;
		best_since = versions[i].since;
	}
	*ret_status =
	    is_known && !best ? LL_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : LL_CU_GET_PROC_ADDRESS_SUCCESS;
	return is_known ? best : name;
}

/* A per-thread variant is as old as its function. */
static bool came_with(const char *symbol, const char *base)
{
	size_t length = strlen(base);
	return strncmp(symbol, base, length) == 0 &&
	       (!symbol[length] || strcmp(symbol + length, "_ptsz") == 0 || strcmp(symbol + length, "_ptds") == 0);
}

bool sim_version_is_newer(const struct sim_world *w, const char *symbol)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		if (came_with(symbol, versions[i].symbol))
			return versions[i].since > (int)w->cuda_version && !is_early(versions[i].symbol);
	}
	return false;
}
