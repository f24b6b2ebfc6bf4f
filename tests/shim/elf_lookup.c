/* Finding libraries and symbols without the loader's dlsym, against what dlsym says. */
#include "shim/interpose/elf_lookup.h"

#include <dlfcn.h>

#include "test.h"

static struct ll_elf_object find(const char *stem)
{
	const char *stems[] = {"no-such-library.so", stem, NULL};
	struct ll_elf_object object = {0};
	assert_true(ll_elf_find(stems, &object));
	return object;
}

TEST(libc_is_found_by_its_name)
{
	const char *nobody[] = {"no-such-library.so", NULL}, *half[] = {"libc.s", NULL};
	struct ll_elf_object object, libc = find("libc.so");
	assert_false(ll_elf_find(nobody, &object));
	assert_false(ll_elf_find(half, &object));
	void *handle = dlopen("libc.so.6", RTLD_NOW);
	assert_true(ll_elf_holds(&libc, dlsym(handle, "strtol")));
	dlclose(handle);
	assert_false(ll_elf_holds(&libc, &object));
	assert_false(ll_elf_holds(&libc, NULL));
}

TEST(the_loader_s_list_of_what_was_there_at_the_start_has_libc)
{
	const char *libc_stems[] = {"libc.so", NULL}, *nobody[] = {"no-such-library.so", NULL};
	struct ll_elf_object started, libc = find("libc.so");
	assert_true(ll_elf_find_started(libc_stems, &started));
	assert_int_equal(started.base, libc.base);
	assert_ptr_equal(ll_elf_function(&started, "dlsym"), ll_elf_function(&libc, "dlsym"));
	assert_false(ll_elf_find_started(nobody, &started));
}

TEST(functions_have_the_addresses_that_dlsym_gives)
{
	/* No functions with several implementations here: their symbol is not the function. */
	static const char *const names[] = {"dlsym", "dlvsym", "dlopen", "malloc", "free", "qsort", "getenv", "fork"};
	struct ll_elf_object libc = find("libc.so");
	void *handle = dlopen("libc.so.6", RTLD_NOW);
	assert_non_null(handle);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		void *expected = dlsym(handle, names[i]);
		if (!ll_elf_holds(&libc, expected))
			continue;
		assert_ptr_equal(ll_elf_function(&libc, names[i]), expected);
		assert_true(ll_elf_exports(&libc, expected));
		assert_false(ll_elf_exports(&libc, (char *)expected + 1));
	}
	assert_null(ll_elf_function(&libc, "no_such_function"));
	assert_null(ll_elf_function(&libc, ""));
	assert_null(ll_elf_function(&libc, "environ"));
	dlclose(handle);
}

/* The same little library, linked with the one or the other hash table. */
static void check_table(const char *file, bool is_gnu)
{
	void *handle = dlopen(file, RTLD_NOW);
	assert_non_null(handle);
	struct ll_elf_object object = find(is_gnu ? "libtable_gnu.so" : "libtable_sysv.so");
	assert_int_equal(object.gnu_hash != NULL, is_gnu);
	assert_int_equal(object.sysv_hash != NULL, !is_gnu);
	for (int i = 0; i < 26; i++) {
		char name[] = "table_a";
		name[6] = (char)('a' + i);
		void *expected = dlsym(handle, name);
		assert_non_null(expected);
		assert_ptr_equal(ll_elf_function(&object, name), expected);
		assert_true(ll_elf_exports(&object, expected));
	}
	assert_null(ll_elf_function(&object, "table_A"));
	assert_null(ll_elf_function(&object, "table_hidden"));
	assert_null(ll_elf_function(&object, "malloc"));
	assert_null(ll_elf_function(&object, "table_data"));
	assert_false(ll_elf_exports(&object, object.symbols));
	dlclose(handle);
	struct ll_elf_object gone;
	const char *stems[] = {is_gnu ? "libtable_gnu.so" : "libtable_sysv.so", NULL};
	assert_false(ll_elf_find(stems, &gone));
}

TEST(both_kinds_of_hash_tables_are_read)
{
	check_table(SHIM_TEST_TABLE_GNU, true);
	check_table(SHIM_TEST_TABLE_SYSV, false);
}

TEST(of_several_versions_the_default_one_is_found)
{
	void *handle = dlopen(SHIM_TEST_TABLE_GNU, RTLD_NOW);
	struct ll_elf_object object = find("libtable_gnu.so");
	void *old = dlvsym(handle, "table_versioned", "TABLE_1"), *now = dlvsym(handle, "table_versioned", "TABLE_2");
	assert_non_null(old);
	assert_non_null(now);
	assert_ptr_not_equal(old, now);
	assert_ptr_equal(ll_elf_function(&object, "table_versioned"), now);
	/* One that has an old version alone is still found. */
	assert_ptr_equal(ll_elf_function(&object, "table_old"), dlvsym(handle, "table_old", "TABLE_1"));
	dlclose(handle);
}
