#include "test.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slices/groups.h"

/* A kernel driver that does whatever it is asked, and keeps the last request. */
enum { CLIENT = 0x41d00001, DEVICE = 0x5c000001, SUBDEVICE = 0x5c000002, GROUP = 0x5c000010 };

static struct {
	int fd;
	uint32_t status;
	struct ll_rm_control control;
	struct ll_rm_disable disable;
	uint64_t slice_us;
} driver;

static int answer(int fd, unsigned long request, ...)
{
	va_list words;
	va_start(words, request);
	void *argument = va_arg(words, void *);
	va_end(words);
	if (fd != driver.fd) {
		errno = ENOTTY;
		return -1;
	}
	if (request != LL_RM_REQUEST(LL_RM_ESC_CONTROL, struct ll_rm_control))
		return 0;
	struct ll_rm_control *control = argument;
	control->status = driver.status;
	driver.control = *control;
	const void *params = (const void *)(uintptr_t)control->params;
	if (control->command == LL_RM_CONTROL_SET_SLICE)
		memcpy(&driver.slice_us, params, sizeof driver.slice_us);
	if (control->command == LL_RM_CONTROL_DISABLE_CHANNELS)
		memcpy(&driver.disable, params, sizeof driver.disable);
	return 0;
}

static void allocate(uint32_t parent, uint32_t object, uint32_t class, const void *params, uint32_t size)
{
	struct ll_rm_alloc made = {.root = CLIENT,
				   .parent = parent,
				   .object = object,
				   .class = class,
				   .params = (uintptr_t)params,
				   .params_size = size};
	int rc = ll_groups_note(answer, driver.fd, LL_RM_REQUEST(LL_RM_ESC_ALLOC, struct ll_rm_alloc), &made);
	assert_int_equal(rc, 0);
}

static void release(uint32_t object)
{
	struct ll_rm_free freed = {.root = CLIENT, .object = object};
	assert_int_equal(ll_groups_note(answer, driver.fd, LL_RM_REQUEST(LL_RM_ESC_FREE, struct ll_rm_free), &freed),
			 0);
}

/* As libcuda makes a context: a group of that engine with so many channels. */
static void make_group(uint32_t group, uint32_t engine, uint32_t channels)
{
	struct ll_rm_group_params params = {.engine = engine};
	allocate(DEVICE, group, LL_RM_CLASS_CHANNEL_GROUP, &params, sizeof params);
	for (uint32_t i = 0; i < channels; i++) {
		uint32_t words[92] = {0};
		words[LL_RM_CHANNEL_CID_OFFSET / sizeof(uint32_t)] = 100 + i;
		allocate(group, group + 0x100 + i, 0xc86f, words, i % 2 ? sizeof words : 0); /* libcuda says no size */
	}
}

static int make_driver(void **state)
{
	(void)state;
	memset(&driver, 0, sizeof driver);
	ll_groups_forget();
	driver.fd = memfd_create("nvidiactl", MFD_CLOEXEC);
	allocate(DEVICE, SUBDEVICE, LL_RM_CLASS_SUBDEVICE, NULL, 0);
	return driver.fd < 0;
}

static int end_driver(void **state)
{
	(void)state;
	return close(driver.fd);
}

TEST_EACH(make_driver, end_driver);

static struct ll_group only_group(void)
{
	struct ll_group groups[LL_GROUPS];
	assert_int_equal(ll_groups_read(groups), 1);
	return groups[0];
}

TEST(test_compute_groups_and_their_channels_are_known)
{
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, 8);
	make_group(GROUP + 1, 11, 4); /* copies */
	struct ll_group group = only_group();
	assert_int_equal(group.client, CLIENT);
	assert_int_equal(group.subdevice, SUBDEVICE);
	assert_int_equal(group.channel_count, 8);
	assert_int_equal(group.channels[7], GROUP + 0x107);
	assert_int_equal(group.contexts[7], 107);
}

TEST(test_the_older_form_of_an_allocation_is_known)
{
	struct ll_rm_group_params params = {.engine = LL_RM_ENGINE_COMPUTE};
	struct ll_rm_alloc_short made = {.root = CLIENT,
					 .parent = DEVICE,
					 .object = GROUP,
					 .class = LL_RM_CLASS_CHANNEL_GROUP,
					 .params = (uintptr_t)&params,
					 .params_size = sizeof params};
	struct ll_rm_xfer xfer = {.request = LL_RM_ESC_ALLOC, .size = sizeof made, .argument = (uintptr_t)&made};
	ll_groups_note(answer, driver.fd, LL_RM_REQUEST(LL_RM_ESC_XFER, struct ll_rm_xfer), &xfer);
	assert_int_equal(only_group().group, GROUP);
}

TEST(test_what_the_driver_refuses_is_not_noted)
{
	struct ll_rm_group_params params = {.engine = LL_RM_ENGINE_COMPUTE};
	struct ll_rm_alloc made = {.root = CLIENT,
				   .parent = DEVICE,
				   .object = GROUP,
				   .class = LL_RM_CLASS_CHANNEL_GROUP,
				   .params = (uintptr_t)&params,
				   .status = 0x51};
	ll_groups_note(answer, driver.fd, LL_RM_REQUEST(LL_RM_ESC_ALLOC, struct ll_rm_alloc), &made);
	struct ll_group groups[LL_GROUPS];
	assert_int_equal(ll_groups_read(groups), 0);
}

TEST(test_objects_take_along_what_was_made_in_them)
{
	struct ll_group groups[LL_GROUPS];
	static const uint32_t ends[] = {GROUP, DEVICE, CLIENT};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		make_group(GROUP, LL_RM_ENGINE_COMPUTE, 8);
		release(ends[i]);
		assert_int_equal(ll_groups_read(groups), 0);
	}
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, 2);
	release(GROUP + 0x100);
	struct ll_group group = only_group();
	assert_int_equal(group.channel_count, 1);
	assert_int_equal(group.channels[0], GROUP + 0x101);
	assert_int_equal(group.contexts[0], 101);
}

TEST(test_more_groups_than_there_is_room_for_are_counted)
{
	struct ll_group groups[LL_GROUPS];
	for (uint32_t i = 0; i < LL_GROUPS + 3; i++)
		make_group(GROUP + 0x1000 * i, LL_RM_ENGINE_COMPUTE, 1);
	assert_int_equal(ll_groups_read(groups), LL_GROUPS + 3);
}

TEST(test_a_group_with_more_channels_than_one_call_takes_is_not_taken_off)
{
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, LL_RM_DISABLE_MAX + 2);
	struct ll_group group = only_group();
	assert_int_equal(group.channel_count, LL_RM_DISABLE_MAX + 2);
	assert_int_equal(ll_group_switch(answer, &group, true), -E2BIG);
}

TEST(test_a_slice_is_set_as_libcuda_sets_it_and_both_are_known)
{
	uint64_t us = 2048;
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, 8);
	struct ll_rm_control control = {.client = CLIENT,
					.object = GROUP,
					.command = LL_RM_CONTROL_SET_SLICE,
					.params = (uintptr_t)&us,
					.params_size = sizeof us};
	ll_groups_note(answer, driver.fd, LL_RM_REQUEST(LL_RM_ESC_CONTROL, struct ll_rm_control), &control);
	struct ll_group group = only_group();
	assert_int_equal(group.slice_us, 2048);
	assert_int_equal(ll_group_set_slice(answer, &group, 100), 0);
	assert_int_equal(driver.slice_us, 100);
	assert_int_equal(driver.control.object, GROUP);
	assert_int_equal(only_group().slice_us, 100);
}

TEST(test_off_names_every_channel)
{
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, 32);
	struct ll_group group = only_group();
	assert_int_equal(ll_group_switch(answer, &group, true), 0);
	assert_int_equal(driver.control.object, SUBDEVICE);
	assert_int_equal(driver.disable.is_off, 1);
	assert_int_equal(driver.disable.count, 32);
	assert_int_equal(driver.disable.clients[31], CLIENT);
	assert_int_equal(driver.disable.channels[31], GROUP + 0x100 + 31);
	assert_int_equal(ll_group_switch(answer, &group, false), 0);
	assert_int_equal(driver.disable.is_off, 0);
}

TEST(test_refusals_are_told_apart)
{
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, 1);
	struct ll_group group = only_group();
	driver.status = LL_RM_BAD_CHANNEL;
	assert_int_equal(ll_group_switch(answer, &group, true), -ESTALE);
	driver.status = LL_RM_NO_RIGHT;
	assert_int_equal(ll_group_set_slice(answer, &group, 1), -EPERM);
	driver.status = 0x56;
	assert_int_equal(ll_group_set_slice(answer, &group, 1), -EIO);
}

/* A program may close descriptors that are not its own, and open another file. */
TEST(test_another_file_with_the_same_number_is_not_asked)
{
	make_group(GROUP, LL_RM_ENGINE_COMPUTE, 1);
	struct ll_group group = only_group();
	int other = memfd_create("other", MFD_CLOEXEC);
	assert_int_equal(dup2(other, driver.fd), driver.fd);
	assert_int_equal(ll_group_set_slice(answer, &group, 1), -EBADF);
	close(other);
}

TEST(test_other_requests_pass_unseen_with_their_errno)
{
	uint32_t before = ll_groups_changes();
	errno = 0;
	assert_int_equal(ll_groups_note(answer, -5, 0x5413, NULL), -1);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(ll_groups_note(answer, driver.fd, 0x5413, NULL), 0);
	assert_int_equal(ll_groups_changes(), before);
}
