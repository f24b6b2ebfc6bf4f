/* What keeps a program's memory on the card: the devices that it has open. */
#include "shim/residency/residency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/loadline-obstacles.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static void path_of(const char *name, char path[96])
{
	snprintf(path, 96, "%s/%s", folder, name);
}

static int remove_folder(void **state)
{
	(void)state;
	char path[96];
	for (char name[] = "0"; *name <= '9'; ++*name) {
		path_of(name, path);
		unlink(path);
	}
	return rmdir(folder);
}

/* As the kernel shows a descriptor in /proc/self/fd. */
static void open_as(const char *number, const char *device)
{
	char path[96];
	path_of(number, path);
	assert_int_equal(symlink(device, path), 0);
}

TEST_WITH(make_folder, remove_folder, devices_that_pin_memory_of_the_card_are_found_among_others)
{
	static const char *const pinning[] = {"/dev/infiniband/uverbs0", "/dev/gdrdrv", "/dev/nvidia-fs15"};
	char found[128], path[96];
	open_as("0", "/dev/null");
	open_as("1", "/dev/nvidia0");
	open_as("2", "socket:[12345]");
	open_as("3", "/home/user/dev/infiniband/uverbs0");
	assert_false(ll_obstacles_find_device(folder, found, sizeof found));
	for (size_t i = 0; i < sizeof pinning / sizeof *pinning; i++) {
		open_as("4", pinning[i]);
		assert_true(ll_obstacles_find_device(folder, found, sizeof found));
		assert_string_equal(found, pinning[i]);
		path_of("4", path);
		assert_int_equal(unlink(path), 0);
	}
	assert_false(ll_obstacles_find_device("/nowhere/fd", found, sizeof found));
}

TEST(a_program_with_an_exported_buffer_cannot_move)
{
	struct ll_device_state dev = {0};
	char why[160] = "";
	assert_false(ll_obstacles_find(&dev, why, sizeof why));
	dev.exported_count = 1;
	assert_true(ll_obstacles_find(&dev, why, sizeof why));
	assert_non_null(strstr(why, "DMA buffer"));
}

TEST(work_that_does_not_end_is_explained_by_waits_for_values_if_there_were_any)
{
	assert_null(strstr(ll_obstacles_of_work(), "waits for a value"));
	ll_obstacles_note_wait();
	assert_non_null(strstr(ll_obstacles_of_work(), "a stream may wait for a value"));
}
