/* A list of hooks against the other lists: what a hook must not lack. LL_HOOKS_LIST is the list of one library. */

#include "test.h"

static const char *const hooks[] = {
#define LL_HOOK(symbol) #symbol,
#define LL_HOOK_NVML(symbol) #symbol,
#include LL_HOOKS_LIST
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

static const struct {
	const char *name;
	int since;
	const char *symbol;
} versions[] = {
#define LL_VERSION(name, since, symbol) {#name, since, #symbol},
#include "shim/interpose/hooks_versions.def"
};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

static const struct {
	const char *symbol, *variant;
} per_thread[] = {
#define LL_CUDA_PER_THREAD(symbol, suffix) {#symbol, #symbol #suffix},
#include "abi/cuda_per_thread.def"
};
enum { PER_THREAD = sizeof per_thread / sizeof per_thread[0] };

static bool is_hooked(const char *symbol)
{
	for (size_t i = 0; i < HOOKS; i++) {
		if (strcmp(hooks[i], symbol) == 0)
			return true;
	}
	return false;
}

TEST(no_hook_is_listed_twice)
{
	for (size_t i = 0; i < HOOKS; i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(hooks[i], hooks[k]);
	}
}

TEST(a_hooked_function_s_per_thread_variant_is_hooked)
{
	for (size_t i = 0; i < PER_THREAD; i++) {
		if (is_hooked(per_thread[i].symbol) != is_hooked(per_thread[i].variant))
			fail_msg("of %s and %s one is hooked", per_thread[i].symbol, per_thread[i].variant);
	}
}

/* The plain name of a symbol of libcuda: without _ptsz or _ptds, and without its version. */
static void plain_name(const char *symbol, char name[128])
{
	snprintf(name, 128, "%s", symbol);
	size_t length = strlen(name);
	if (length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0))
		name[length - 5] = '\0';
	char *version = strrchr(name, '_');
	if (version && version[1] == 'v' && version[2] && strspn(version + 2, "0123456789") == strlen(version + 2))
		*version = '\0';
}

TEST(a_hook_with_a_version_in_its_symbol_has_rows)
{
	for (size_t i = 0; i < HOOKS; i++) {
		char name[128];
		bool has_rows = false;
		plain_name(hooks[i], name);
		size_t length = strlen(hooks[i]);
		if (strncmp(hooks[i], "cu", 2) != 0 || strcmp(name, hooks[i]) == 0)
			continue;
		if (strncmp(hooks[i] + strlen(name), "_ptsz", 5) == 0 ||
		    strncmp(hooks[i] + strlen(name), "_ptds", 5) == 0)
			continue;
		for (size_t k = 0; k < VERSIONS; k++)
			has_rows |= strcmp(versions[k].name, name) == 0 &&
				    strncmp(hooks[i], versions[k].symbol, strlen(versions[k].symbol)) == 0;
		if (!has_rows)
			fail_msg("%s (%zu characters) has no row in hooks_versions.def", hooks[i], length);
	}
}

TEST(rows_of_a_name_are_together_and_in_rising_order)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		for (size_t k = 0; k < i; k++) {
			if (strcmp(versions[i].name, versions[k].name) != 0)
				continue;
			assert_true(versions[k].since < versions[i].since);
			assert_string_equal(versions[i - 1].name, versions[i].name);
		}
	}
}
