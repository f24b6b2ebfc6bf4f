/* A list of hooks against the other lists: what a hook must not lack. LL_HOOKS_LIST is the list of one library. */

#include "test.h"

static const char *const hooks[] = {
#define LL_HOOK(symbol) #symbol,
#define LL_HOOK_NVML(symbol) #symbol,
#include LL_HOOKS_LIST
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

static const struct {
	const char *symbol;
	int since;
} versions[] = {
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args) {#symbol, since},
#include "abi/cuda.def"
};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

static const struct {
	const char *symbol, *variant;
} per_thread[] = {
#define LL_CUDA_PER_THREAD(symbol, suffix, params, args) {#symbol, #symbol #suffix},
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

TEST(a_hook_of_a_name_with_versions_says_since_when)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		char name[128], other[128];
		bool has_versions = false;
		plain_name(versions[i].symbol, name);
		for (size_t k = 0; k < VERSIONS; k++) {
			plain_name(versions[k].symbol, other);
			has_versions |= strcmp(other, name) == 0 && strcmp(versions[k].symbol, name) != 0;
		}
		if (is_hooked(versions[i].symbol) && has_versions && !versions[i].since)
			fail_msg("the row of %s in cuda.def says no version", versions[i].symbol);
	}
}

TEST(rows_of_a_name_are_together_and_in_rising_order)
{
	for (size_t i = 0; i < VERSIONS; i++) {
		char name[128], other[128];
		plain_name(versions[i].symbol, name);
		for (size_t k = 0; k < i; k++) {
			plain_name(versions[k].symbol, other);
			if (strcmp(name, other) != 0)
				continue;
			assert_true(versions[k].since < versions[i].since);
			plain_name(versions[i - 1].symbol, other);
			assert_string_equal(other, name);
		}
	}
}
