/*
 * The Vulkan payload on Mesa's lavapipe, whose device clock is the low half of CLOCK_MONOTONIC;
 * LOADLINE_VULKAN_CLOCK=off gives the calibrated loop. Only a real card shows: the choice of a card by UUID, its own
 * clock, lost devices and memory on the card (bench). Kernels here stay under 9 ms: lavapipe
 * leaves a loop after 65535 rounds.
 */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "driver/cards.h"
#include "hold/payload.h"
#include "hold/payload_vulkan.h"

#define DEADLINE_NS (20 * LL_NS_PER_S)

static const struct ll_payload_ops *const ops = &ll_payload_vulkan;
static const struct ll_payload_config plain_config;

static struct ll_payload *open_payload(bool needs_fma)
{
	const struct ll_payload_config config = {.needs_fma = needs_fma};
	struct ll_payload *payload = NULL;
	struct ll_err err = {0};

	if (ops->open(NULL, &config, &payload, &err) != 0)
		fail_msg("%s", err.text);
	assert_ptr_equal(payload->ops, ops);
	return payload;
}

static struct ll_payload_launch spin(uint32_t sequence, uint64_t length_ns)
{
	return (struct ll_payload_launch){
	    .kernel = LL_KERNEL_SPIN,
	    .blocks = 1,
	    .threads = 32,
	    .length_ns = length_ns,
	    .epoch = 1,
	    .sequence = sequence,
	};
}

static void launch(struct ll_payload *payload, struct ll_payload_launch what)
{
	struct ll_err err = {0};

	if (ops->launch(payload, &what, &err) != 0)
		fail_msg("launch %u: %s", what.sequence, err.text);
}

/* Waits for one record and copies it. */
static struct ll_record record_of(const struct ll_payload *payload, uint32_t sequence)
{
	const volatile struct ll_record *record = &payload->records[sequence % LL_RECORD_SLOTS];
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_NS;

	while (record->sequence != sequence) {
		if (ll_now_ns() > deadline_ns)
			fail_msg("no record %u", sequence);
		ll_sleep_until_ns(ll_now_ns() + 100 * LL_NS_PER_US);
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *record;
}

TEST(spins_last_their_length_and_run_in_order)
{
	struct ll_payload *payload = open_payload(false);
	uint64_t last_end_ns = 0;
	unsigned with_gap = 0;

	assert_true(payload->has_card_clock);
	for (uint32_t i = 1; i <= 20; i++)
		launch(payload, spin(i, LL_NS_PER_MS));
	for (uint32_t i = 1; i <= 20; i++) {
		struct ll_record record = record_of(payload, i);

		assert_int_equal(record.flags, 0);
		assert_true(record.end_ns - record.start_ns >= LL_NS_PER_MS);
		assert_true(record.start_ns >= last_end_ns);
		assert_true(record.gap_ns <= record.end_ns - record.start_ns);
		with_gap += record.gap_ns > 0; /* none where a busy host came to its first look after the end */
		last_end_ns = record.end_ns;
	}
	assert_true(with_gap > 0);
	ops->close(payload);
}

TEST(card_clock_counts_nanoseconds)
{
	struct ll_payload *payload = open_payload(false);
	uint64_t start_ns = ll_now_ns(), host_ns, card_ns;

	launch(payload, spin(1, 0));
	card_ns = record_of(payload, 1).start_ns;
	ll_sleep_until_ns(start_ns + 200 * LL_NS_PER_MS);
	launch(payload, spin(2, 0));
	card_ns = record_of(payload, 2).start_ns - card_ns;
	host_ns = ll_now_ns() - start_ns;
	assert_in_range(card_ns, host_ns / 4, host_ns * 2);
	ops->close(payload);
}

TEST(late_kernel_ends_at_once_and_stops_its_epoch)
{
	struct ll_payload *payload = open_payload(false);
	struct ll_payload_launch late = spin(1, 10 * LL_NS_PER_S);
	struct ll_payload_launch next = spin(2, 10 * LL_NS_PER_S), other = spin(3, LL_NS_PER_MS);

	late.late_after_ns = 1;
	other.epoch = 2;
	launch(payload, late);
	launch(payload, next);
	launch(payload, other);
	assert_int_equal(record_of(payload, 1).flags, LL_RECORD_LATE);
	assert_int_equal(record_of(payload, 2).flags, LL_RECORD_STOPPED);
	assert_true(record_of(payload, 2).end_ns - record_of(payload, 2).start_ns < LL_NS_PER_S);
	assert_int_equal(record_of(payload, 3).flags, 0);
	assert_true(record_of(payload, 3).end_ns - record_of(payload, 3).start_ns >= LL_NS_PER_MS);
	ops->close(payload);
}

TEST(gap_ends_the_kernel_and_stops_its_epoch)
{
	struct ll_payload *payload = open_payload(false);
	struct ll_payload_launch strict = spin(1, 10 * LL_NS_PER_S), lenient = spin(3, 100 * LL_NS_PER_US);

	strict.gap_limit_ns = 1;
	lenient.epoch = 2;
	lenient.gap_limit_ns = 10 * LL_NS_PER_S;
	lenient.late_after_ns = UINT64_MAX;
	launch(payload, strict);
	launch(payload, spin(2, 10 * LL_NS_PER_S));
	launch(payload, lenient);
	assert_int_equal(record_of(payload, 1).flags, LL_RECORD_GAP);
	assert_true(record_of(payload, 1).gap_ns > 1);
	assert_int_equal(record_of(payload, 2).flags, LL_RECORD_STOPPED);
	assert_int_equal(record_of(payload, 3).flags, 0);
	ops->close(payload);
}

TEST(slots_are_used_again_and_again)
{
	struct ll_payload *payload = open_payload(false);
	uint64_t last_ns = 0;

	for (uint32_t i = 1; i <= 5 * LL_RECORD_SLOTS; i++) {
		launch(payload, spin(i, 10 * LL_NS_PER_US));
		if (i >= LL_RECORD_SLOTS / 2) {
			struct ll_record record = record_of(payload, i - LL_RECORD_SLOTS / 2 + 1);

			assert_true(record.start_ns >= last_ns);
			last_ns = record.end_ns;
		}
		assert_int_equal(ops->check(payload, NULL), 0);
	}
	ops->close(payload);
}

/* A slow machine may let the first kernel end before the second launch: then once more. */
TEST(launching_into_a_pending_slot_is_refused)
{
	struct ll_payload *payload = open_payload(false);
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_NS;
	uint32_t sequence = 1;
	struct ll_err err = {0};

	do {
		struct ll_payload_launch same_slot;

		assert_true(ll_now_ns() < deadline_ns);
		launch(payload, spin(sequence, 5 * LL_NS_PER_MS));
		same_slot = spin(sequence + LL_RECORD_SLOTS, 0);
		if (ops->launch(payload, &same_slot, &err) == 0)
			sequence = same_slot.sequence;
		record_of(payload, sequence++);
	} while (err.code == 0);
	assert_int_equal(err.code, -EAGAIN);
	launch(payload, spin(sequence, 0));
	record_of(payload, sequence);
	ops->close(payload);
}

TEST(every_shape_of_kernel_runs)
{
	static const struct {
		enum ll_kernel kernel;
		uint32_t blocks, threads;
	} shapes[] = {
	    {LL_KERNEL_SPIN, 3, 32}, {LL_KERNEL_SPIN, 1, 1024}, {LL_KERNEL_FMA, 1, 32}, {LL_KERNEL_FMA, 2, 1024}};
	struct ll_payload *payload = open_payload(true);

	for (uint32_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct ll_payload_launch what = spin(i + 1, LL_NS_PER_MS);
		struct ll_record record;

		what.kernel = shapes[i].kernel;
		what.blocks = shapes[i].blocks;
		what.threads = shapes[i].threads;
		launch(payload, what);
		record = record_of(payload, i + 1);
		assert_int_equal(record.flags, 0);
		assert_true(record.end_ns - record.start_ns >= LL_NS_PER_MS);
	}
	ops->close(payload);
}

TEST(malformed_launches_are_refused)
{
	struct ll_payload *payload = open_payload(false);
	struct ll_payload_launch bad[5];
	struct ll_err err;

	for (unsigned i = 0; i < 5; i++)
		bad[i] = spin(1, 0);
	bad[0].threads = 64;
	bad[1].blocks = 0;
	bad[2].epoch = 0;
	bad[3].sequence = 0;
	bad[4].kernel = LL_KERNEL_FMA; /* not opened for it */
	for (unsigned i = 0; i < 5; i++)
		assert_fails(ops->launch(payload, &bad[i], &err), -EINVAL, "Vulkan");
	ops->close(payload);
}

TEST(without_clock_the_loop_makes_up_the_times)
{
	struct ll_payload *payload;
	uint64_t last_end_ns = 0;

	setenv("LOADLINE_VULKAN_CLOCK", "off", 1);
	payload = open_payload(true);
	unsetenv("LOADLINE_VULKAN_CLOCK");
	assert_false(payload->has_card_clock);
	for (uint32_t i = 1; i <= 6; i++) {
		struct ll_payload_launch what = spin(i, LL_NS_PER_MS);

		what.kernel = i % 2 ? LL_KERNEL_SPIN : LL_KERNEL_FMA;
		what.late_after_ns = 1;
		what.gap_limit_ns = 1;
		launch(payload, what);
	}
	for (uint32_t i = 1; i <= 6; i++) {
		struct ll_record record = record_of(payload, i);

		assert_int_equal(record.flags, 0);
		assert_int_equal(record.end_ns - record.start_ns, LL_NS_PER_MS);
		assert_true(record.start_ns >= last_end_ns);
		last_end_ns = record.end_ns;
	}
	ops->close(payload);
}

/* Only the order of magnitude: the machine may be slow or change its clock rate. */
TEST(without_clock_the_loop_takes_about_its_length)
{
	struct ll_payload *payload;
	uint64_t start_ns;

	setenv("LOADLINE_VULKAN_CLOCK", "off", 1);
	payload = open_payload(false);
	unsetenv("LOADLINE_VULKAN_CLOCK");
	start_ns = ll_now_ns();
	for (uint32_t i = 1; i <= 20; i++)
		launch(payload, spin(i, 5 * LL_NS_PER_MS));
	record_of(payload, 20);
	assert_true(ll_now_ns() - start_ns > 10 * LL_NS_PER_MS);
	ops->close(payload);
}

TEST(missing_library_is_no_device)
{
	struct ll_payload *payload = NULL;
	struct ll_err err;

	setenv("LOADLINE_VULKAN_LIBRARY", "/nonexistent/libvulkan.so.1", 1);
	assert_fails(ops->open(NULL, &plain_config, &payload, &err), -ENODEV, "/nonexistent/libvulkan.so.1");
	setenv("LOADLINE_VULKAN_LIBRARY", "libm.so.6", 1);
	assert_fails(ops->open(NULL, &plain_config, &payload, &err), -ENODEV, "not a Vulkan library");
	unsetenv("LOADLINE_VULKAN_LIBRARY");
	assert_null(payload);
}

TEST(unknown_card_is_no_device_and_hints_at_containers)
{
	const struct ll_card card = {.uuid_bytes = {0xde, 0xad}};
	struct ll_payload *payload = NULL;
	struct ll_err err;

	unsetenv("LOADLINE_VULKAN_DEVICE");
	assert_fails(ops->open(&card, &plain_config, &payload, &err), -ENODEV, "is this card");
	assert_non_null(strstr(err.hint, "NVIDIA_DRIVER_CAPABILITIES"));
	setenv("LOADLINE_VULKAN_DEVICE", "cpu", 1);
	assert_int_equal(ops->open(&card, &plain_config, &payload, NULL), 0);
	ops->close(payload);
}

TEST(driver_library_works_without_the_loader)
{
	struct ll_payload *payload;

	setenv("LOADLINE_VULKAN_LIBRARY", "libvulkan_lvp.so", 1);
	payload = open_payload(false);
	unsetenv("LOADLINE_VULKAN_LIBRARY");
	launch(payload, spin(1, LL_NS_PER_MS));
	assert_int_equal(record_of(payload, 1).flags, 0);
	ops->close(payload);
}

static struct ll_vk_device open_device(void)
{
	const struct ll_vk_wish wish = {.wants_clock = true};
	struct ll_vk_device device;
	struct ll_err err = {0};

	if (ll_vk_device_open(&device, &wish, &err) != 0)
		fail_msg("%s", err.text);
	return device;
}

TEST(devices_share_one_instance_that_ends_with_the_last)
{
	struct ll_vk_device first = open_device(), second = open_device();

	assert_ptr_equal(first.instance, second.instance);
	assert_int_equal(second.instance->users, 2);
	ll_vk_device_close(&first);
	assert_int_equal(second.instance->users, 1);
	ll_vk_device_close(&second);
	second = open_device();
	assert_int_equal(second.instance->users, 1);
	ll_vk_device_close(&second);
}

enum { ROUNDS = 5 };

static void *open_run_and_close(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ll_payload *payload = open_payload(false);

		launch(payload, spin(1, LL_NS_PER_MS));
		record_of(payload, 1);
		ops->close(payload);
	}
	return NULL;
}

TEST(a_payload_runs_on_while_others_come_and_go)
{
	struct ll_payload *payload = open_payload(false);
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_run_and_close, NULL), 0);
	for (uint32_t i = 1; i <= 50; i++) {
		launch(payload, spin(i, LL_NS_PER_MS));
		assert_int_equal(record_of(payload, i).flags, 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	ops->close(payload);
}

TEST(close_ends_what_is_queued)
{
	struct ll_payload *payload = open_payload(false);
	uint64_t start_ns;

	for (uint32_t i = 1; i <= 30; i++)
		launch(payload, spin(i, i == 1 ? LL_NS_PER_MS : LL_NS_PER_S));
	start_ns = ll_now_ns();
	ops->close(payload);
	assert_true(ll_now_ns() - start_ns < 10 * LL_NS_PER_S);
	ops->close(NULL);
}

/* lavapipe leaks 128 bytes a device. Its frames have a name only while it stays mapped, see choose_lavapipe. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libvulkan_lvp.so\n";
}

/* Before any Vulkan call: of all drivers installed, lavapipe. */
static bool choose_lavapipe(void)
{
	glob_t found;
	void *pinned;
	bool is_there = glob("/usr/share/vulkan/icd.d/lvp_icd*.json", 0, NULL, &found) == 0;

	if (is_there) {
		setenv("VK_ICD_FILENAMES", found.gl_pathv[0], 1);
		setenv("VK_DRIVER_FILES", found.gl_pathv[0], 1);
	}
	globfree(&found);
	setenv("LOADLINE_VULKAN_DEVICE", "cpu", 1);
	pinned = dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (pinned)
		dlclose(pinned); /* stays mapped all the same */
	return is_there && pinned;
}

int main(int argc, char **argv)
{
	if (!choose_lavapipe()) {
		fputs("no lavapipe: skipped\n", stderr);
		return LL_EXIT_SKIPPED;
	}
	return tests_run(argc, argv);
}
