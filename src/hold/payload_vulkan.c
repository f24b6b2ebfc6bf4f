/*
 * The Vulkan back end. On an H200 a CUDA program does not preempt Vulkan kernels: a kernel of 8 ms ran to its end, and
 * the CUDA kernel saw the gap instead. So launches must be short (2 ms), and foreign work shows as LATE, not as GAP.
 *
 * Soundness: once in FENCE_INTERVAL_NS a launch has a fence, and check() reads the fence's status. An empty submit
 * would also show a lost device, but it puts the context on the card, which a load that has yielded must not do. A
 * device that is lost while nothing is launched is noticed at the next launch.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "driver/cards.h"
#include "driver/readings.h"
#include "hold/payload.h"
#include "hold/payload_vulkan_kernels.h"

/*
 * ---- the first runs ----
 *
 * Every pipeline runs once at opening, so that the driver's work for a first launch is done. If a device has no clock,
 * or its clock has an unknown unit, its kernels run a counted number of loops instead of a time. The loops are timed
 * here with one block. That is an estimate, which becomes wrong when the card's clock rate changes or when blocks
 * compete.
 */

struct loop_rates {
	double loops_per_ns[LL_VK_VARIANTS]; /* 0 with the clock */
};

#define RUN_TIMEOUT_NS (5 * LL_NS_PER_S)
#define LOOP_RUN_NS (3 * LL_NS_PER_MS)
enum {
	TRIES = 5,
	MAX_LOOPS = 1 << 28,
};

struct probe {
	struct ll_vk_kernels *kernels;
	enum ll_vk_variant variant;
	uint32_t sequence;
};

/* *ret_ns: from before the submit to after the wait. */
static int run_once(struct probe *probe, uint32_t loops, uint64_t *ret_ns, struct ll_err *err)
{
	volatile struct ll_vk_shared *shared = probe->kernels->memory.shared;
	volatile struct ll_vk_slot *slot = &shared->slots[0];
	uint64_t before_ns = ll_now_ns();
	int r;

	slot->blocks[0] = slot->blocks[1] = slot->blocks[2] = 1;
	slot->epoch = 1;
	slot->length_ns = 0;
	slot->late_after_ns = UINT64_MAX;
	slot->queued_ns = before_ns;
	slot->gap_limit_ns = UINT32_MAX;
	slot->loops = loops;
	slot->sequence = ++probe->sequence;
	r = ll_vk_kernels_submit(probe->kernels, probe->variant, 0, VK_NULL_HANDLE, err);
	if (r == 0)
		r = ll_vk_kernels_wait(probe->kernels, RUN_TIMEOUT_NS, err);
	if (r < 0)
		return r;
	if (shared->records[0].sequence != probe->sequence)
		return ll_err_set(err, -EIO, "Vulkan: a kernel ended without writing its record");
	*ret_ns = ll_now_ns() - before_ns;
	return 0;
}

/* Returns the shortest of several runs, because it was disturbed least. */
static int run_best(struct probe *probe, uint32_t loops, uint64_t *ret_ns, struct ll_err *err)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t ns = 0;
		int r = run_once(probe, loops, &ns, err);

		if (r < 0)
			return r;
		if (ns < best_ns)
			best_ns = ns;
	}
	*ret_ns = best_ns;
	return 0;
}

/* Times two lengths. The cost of the launch itself is in both, so their difference is without it. */
static int measure_loop(struct probe *probe, double *ret_loops_per_ns, struct ll_err *err)
{
	uint64_t short_ns = 0, long_ns = 0;
	uint32_t loops = 1024;
	int r;

	do {
		loops *= 2;
		r = run_once(probe, loops, &short_ns, err);
		if (r < 0)
			return r;
	} while (short_ns < LOOP_RUN_NS && loops < MAX_LOOPS);
	r = run_best(probe, loops, &short_ns, err);
	if (r == 0)
		r = run_best(probe, 2 * loops, &long_ns, err);
	if (r < 0)
		return r;
	*ret_loops_per_ns = (double)loops / (double)(long_ns > short_ns ? long_ns - short_ns : long_ns);
	return 0;
}

static int calibrate_variant(struct probe *probe, struct loop_rates *rates, struct ll_err *err)
{
	uint64_t ns;

	if (!probe->kernels->device->has_clock)
		return measure_loop(probe, &rates->loops_per_ns[probe->variant], err);
	return run_once(probe, 0, &ns, err);
}

static void forget_record(volatile struct ll_record *record)
{
	record->start_ns = record->end_ns = record->gap_ns = 0;
	record->flags = record->sequence = 0;
}

/* Takes some ms, or without a clock about 50 ms for each pipeline. Leaves records and card buffer zeroed. -EIO: a
 * kernel does not end. */
static int calibrate_kernels(struct ll_vk_kernels *kernels, struct loop_rates *ret_rates, struct ll_err *err)
{
	struct probe probe = {.kernels = kernels};
	struct loop_rates rates = {0};
	int r = 0;

	for (unsigned i = 0; i < LL_VK_VARIANTS && r == 0; i++) {
		probe.variant = (enum ll_vk_variant)i;
		if (kernels->pipelines[i])
			r = calibrate_variant(&probe, &rates, err);
	}
	if (r == 0)
		r = ll_vk_kernels_reset(kernels, err);
	if (r < 0)
		return r;
	forget_record(&kernels->memory.shared->records[0]);
	*ret_rates = rates;
	return 0;
}

/* Returns how many loops last that long. */
static uint32_t count_loops(const struct loop_rates *rates, enum ll_vk_variant variant, uint64_t length_ns)
{
	double loops = (double)length_ns * rates->loops_per_ns[variant];

	return loops < (double)UINT32_MAX ? (uint32_t)loops : UINT32_MAX;
}

/* ---- the payload ---- */

#define FENCE_INTERVAL_NS (100 * LL_NS_PER_MS)
#define CLOSE_TIMEOUT_NS (500 * LL_NS_PER_MS)

struct vulkan_payload {
	struct ll_payload base;
	struct ll_vk_device device;
	struct ll_vk_kernels kernels;
	struct loop_rates rates;
	uint32_t pending[LL_RECORD_SLOTS]; /* the sequence each slot was last launched with; 0: never */
	VkFence fence;
	bool fence_is_queued;
	uint64_t fence_due_ns;
	bool is_lost;
};

static struct vulkan_payload *vulkan_of(struct ll_payload *payload)
{
	return (struct vulkan_payload *)payload;
}

/* Tests choose lavapipe, another library, and a device without a clock. */
static struct ll_vk_wish wish_for(const struct ll_card *card)
{
	const char *device = secure_getenv("LOADLINE_VULKAN_DEVICE");
	const char *clock = secure_getenv("LOADLINE_VULKAN_CLOCK");
	bool wants_cpu = !card || (device && strcmp(device, "cpu") == 0);

	return (struct ll_vk_wish){
	    .uuid = wants_cpu ? NULL : card->uuid_bytes,
	    .library = secure_getenv("LOADLINE_VULKAN_LIBRARY"),
	    .wants_clock = !clock || strcmp(clock, "off") != 0,
	};
}

static uint64_t used_bytes(const struct ll_card *card)
{
	struct ll_memory memory;

	return card && ll_read_memory(card, &memory, NULL) == 0 ? memory.used_bytes : 0;
}

/* Compares the limit with the growth of the card's used memory since before_bytes, whoever allocated it, because a user
 * sees the same reading. */
static int check_memory(const struct ll_card *card, uint64_t before_bytes, uint64_t max_bytes, struct ll_err *err)
{
	uint64_t after_bytes = max_bytes > 0 ? used_bytes(card) : 0;
	uint64_t gained_bytes = after_bytes > before_bytes ? after_bytes - before_bytes : 0;

	if (gained_bytes <= max_bytes)
		return 0;
	ll_err_set(err, -EDQUOT, "Vulkan: the card gained %.1f MiB of %.1f allowed", (double)gained_bytes / (1 << 20),
		   (double)max_bytes / (1 << 20));
	return ll_err_hint(err, "allow more with --max-memory");
}

static int open_parts(struct vulkan_payload *vulkan, const struct ll_vk_wish *wish, bool needs_fma, struct ll_err *err)
{
	const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	VkResult result;
	int r = ll_vk_device_open(&vulkan->device, wish, err);

	if (r == 0)
		r = ll_vk_kernels_init(&vulkan->kernels, &vulkan->device, needs_fma, err);
	if (r == 0)
		r = calibrate_kernels(&vulkan->kernels, &vulkan->rates, err);
	if (r < 0)
		return r;
	result = vulkan->device.api.vkCreateFence(vulkan->device.device, &fence, NULL, &vulkan->fence);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "create fence");
}

static void vulkan_close(struct ll_payload *payload)
{
	struct vulkan_payload *vulkan = vulkan_of(payload);

	if (!payload)
		return;
	if (vulkan->kernels.device) {
		vulkan->kernels.memory.shared->is_closing = 1;
		/* After a time-out the close goes on: destroying the device ends its kernels. */
		(void)ll_vk_kernels_wait(&vulkan->kernels, CLOSE_TIMEOUT_NS, NULL);
		if (vulkan->fence)
			vulkan->device.api.vkDestroyFence(vulkan->device.device, vulkan->fence, NULL);
	}
	ll_vk_kernels_fini(&vulkan->kernels);
	ll_vk_device_close(&vulkan->device);
	free(vulkan);
	malloc_trim(0);
}

static int vulkan_open(const struct ll_card *card, const struct ll_payload_config *config,
		       struct ll_payload **ret_payload, struct ll_err *err)
{
	const struct ll_vk_wish wish = wish_for(card);
	uint64_t before_bytes = config->max_memory_bytes > 0 ? used_bytes(card) : 0;
	struct vulkan_payload *vulkan = calloc(1, sizeof(*vulkan));
	int r;

	if (!vulkan)
		return ll_err_set(err, -ENOMEM, "Vulkan: no host memory");
	r = open_parts(vulkan, &wish, config->needs_fma, err);
	if (r == 0)
		r = check_memory(card, before_bytes, config->max_memory_bytes, err);
	if (r < 0) {
		vulkan_close(&vulkan->base);
		return r;
	}
	vulkan->base.ops = &ll_payload_vulkan;
	vulkan->base.records = vulkan->kernels.memory.shared->records;
	vulkan->base.sm_count = vulkan->device.sm_count;
	vulkan->base.has_card_clock = vulkan->device.has_clock;
	/* The shader compiler leaves tens of MiB that are never needed again. */
	malloc_trim(0);
	*ret_payload = &vulkan->base;
	return 0;
}

static int check_launch(const struct vulkan_payload *vulkan, const struct ll_payload_launch *launch, struct ll_err *err)
{
	int variant = ll_vk_choose_variant(launch->kernel, launch->threads);
	uint32_t slot = launch->sequence % LL_RECORD_SLOTS;

	if (variant < 0 || !vulkan->kernels.pipelines[variant] || launch->blocks == 0 || launch->epoch == 0 ||
	    launch->sequence == 0)
		return ll_err_set(err, -EINVAL, "Vulkan: a launch that the payload was not opened for");
	if (vulkan->is_lost)
		return ll_err_set(err, -EIO, "Vulkan: the device is lost");
	if (vulkan->pending[slot] != 0 && vulkan->base.records[slot].sequence != vulkan->pending[slot])
		return ll_err_set(err, -EAGAIN, "Vulkan: %d kernels are queued already", LL_RECORD_SLOTS);
	return variant;
}

static void fill_slot(struct vulkan_payload *vulkan, const struct ll_payload_launch *launch, enum ll_vk_variant variant,
		      uint64_t now_ns)
{
	volatile struct ll_vk_slot *slot = &vulkan->kernels.memory.shared->slots[launch->sequence % LL_RECORD_SLOTS];
	bool has_gap_limit = launch->gap_limit_ns > 0 && launch->gap_limit_ns < UINT32_MAX;

	slot->blocks[0] = launch->blocks;
	slot->blocks[1] = slot->blocks[2] = 1;
	slot->epoch = launch->epoch;
	slot->length_ns = launch->length_ns;
	slot->late_after_ns = launch->late_after_ns > 0 ? launch->late_after_ns : UINT64_MAX;
	slot->queued_ns = now_ns;
	slot->gap_limit_ns = has_gap_limit ? (uint32_t)launch->gap_limit_ns : UINT32_MAX;
	slot->loops = count_loops(&vulkan->rates, variant, launch->length_ns);
	slot->sequence = launch->sequence;
}

static int vulkan_launch(struct ll_payload *payload, const struct ll_payload_launch *launch, struct ll_err *err)
{
	struct vulkan_payload *vulkan = vulkan_of(payload);
	uint64_t now_ns = ll_now_ns();
	bool takes_fence = !vulkan->fence_is_queued && now_ns >= vulkan->fence_due_ns;
	uint32_t slot = launch->sequence % LL_RECORD_SLOTS;
	int variant = check_launch(vulkan, launch, err);
	int r;

	if (variant < 0)
		return variant;
	fill_slot(vulkan, launch, (enum ll_vk_variant)variant, now_ns);
	r = ll_vk_kernels_submit(&vulkan->kernels, (enum ll_vk_variant)variant, slot,
				 takes_fence ? vulkan->fence : VK_NULL_HANDLE, err);
	if (r < 0) {
		vulkan->is_lost |= r == -EIO;
		return r;
	}
	vulkan->pending[slot] = launch->sequence;
	if (takes_fence) {
		vulkan->fence_is_queued = true;
		vulkan->fence_due_ns = now_ns + FENCE_INTERVAL_NS;
	}
	return 0;
}

static int vulkan_check(struct ll_payload *payload, struct ll_err *err)
{
	struct vulkan_payload *vulkan = vulkan_of(payload);
	const struct ll_vk_device *device = &vulkan->device;
	VkResult result;

	if (vulkan->is_lost)
		return ll_err_set(err, -EIO, "Vulkan: the device is lost");
	if (!vulkan->fence_is_queued)
		return 0;
	result = device->api.vkGetFenceStatus(device->device, vulkan->fence);
	if (result == VK_NOT_READY)
		return 0;
	if (result == VK_SUCCESS)
		result = device->api.vkResetFences(device->device, 1, &vulkan->fence);
	vulkan->fence_is_queued = false;
	if (result == VK_SUCCESS)
		return 0;
	vulkan->is_lost = true;
	return ll_vk_fail(result, err, "check");
}

const struct ll_payload_ops ll_payload_vulkan = {
    .name = "vulkan",
    .is_restless = true, /* its driver's threads wake 113 times a second: 0.4 % of a core (doc/facts.md) */
    .open = vulkan_open,
    .launch = vulkan_launch,
    .check = vulkan_check,
    .close = vulkan_close,
};
