#include "base/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define MIB UINT64_C(1048576)

static char folder[64];

static void write_file(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/loadline-test.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"memory.max", "memory.current", "memory.stat", "memory.limit_in_bytes",
					    "memory.usage_in_bytes"};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

TEST_EACH(make_folder, remove_folder);

static struct ll_host_group_memory read_group(enum ll_host_group_version version)
{
	struct ll_host_group_memory memory = {UINT64_MAX, UINT64_MAX};
	ll_host_add_group(folder, version, &memory);
	return memory;
}

TEST(a_group_without_a_limit_changes_nothing)
{
	struct ll_host_group_memory memory = read_group(LL_HOST_GROUP_V2); /* there is no such group */
	assert_true(memory.limit_bytes == UINT64_MAX && memory.left_bytes == UINT64_MAX);
	write_file("memory.max", "max\n");
	write_file("memory.current", "1048576\n");
	memory = read_group(LL_HOST_GROUP_V2);
	assert_true(memory.limit_bytes == UINT64_MAX && memory.left_bytes == UINT64_MAX);
	write_file("memory.limit_in_bytes", "9223372036854771712\n");
	memory = read_group(LL_HOST_GROUP_V1);
	assert_true(memory.limit_bytes == UINT64_MAX && memory.left_bytes == UINT64_MAX);
}

TEST(what_is_used_is_not_left)
{
	write_file("memory.max", "104857600\n");
	write_file("memory.current", "41943040\n");
	struct ll_host_group_memory memory = read_group(LL_HOST_GROUP_V2);
	assert_int_equal(memory.limit_bytes, 100 * MIB);
	assert_int_equal(memory.left_bytes, 60 * MIB);
	write_file("memory.current", "209715200\n");
	assert_int_equal(read_group(LL_HOST_GROUP_V2).left_bytes, 0);
}

/* A group that has read large files is not short of memory. */
TEST(pages_of_files_that_nobody_uses_are_left)
{
	write_file("memory.max", "104857600\n");
	write_file("memory.current", "94371840\n");
	write_file("memory.stat", "anon 10485760\nfile 83886080\nactive_file 31457280\ninactive_file 52428800\n");
	assert_int_equal(read_group(LL_HOST_GROUP_V2).left_bytes, 60 * MIB);
	write_file("memory.limit_in_bytes", "104857600\n");
	write_file("memory.usage_in_bytes", "94371840\n");
	write_file("memory.stat", "inactive_file 1048576\ntotal_inactive_file 20971520\n");
	assert_int_equal(read_group(LL_HOST_GROUP_V1).left_bytes, 30 * MIB);
	write_file("memory.stat", "total_inactive_file 209715200\n");
	assert_int_equal(read_group(LL_HOST_GROUP_V1).left_bytes, 100 * MIB);
}

TEST(the_tightest_group_counts)
{
	struct ll_host_group_memory memory = {50 * MIB, 20 * MIB};
	write_file("memory.max", "104857600\n");
	write_file("memory.current", "99614720\n");
	ll_host_add_group(folder, LL_HOST_GROUP_V2, &memory);
	assert_int_equal(memory.limit_bytes, 50 * MIB);
	assert_int_equal(memory.left_bytes, 5 * MIB);
}
