#include "hold/payload_vulkan_calibrate.h"

#include <errno.h>

#include "base/clock.h"
#include "base/err.h"

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

/* Of several runs the quickest: least has come between. */
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

/* Two lengths, so that what a launch costs by itself falls out of the difference. */
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

static int calibrate_variant(struct probe *probe, struct ll_vk_rates *rates, struct ll_err *err)
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

int ll_vk_calibrate(struct ll_vk_kernels *kernels, struct ll_vk_rates *ret_rates, struct ll_err *err)
{
	struct probe probe = {.kernels = kernels};
	struct ll_vk_rates rates = {0};
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

uint32_t ll_vk_loops(const struct ll_vk_rates *rates, enum ll_vk_variant variant, uint64_t length_ns)
{
	double loops = (double)length_ns * rates->loops_per_ns[variant];

	return loops < (double)UINT32_MAX ? (uint32_t)loops : UINT32_MAX;
}
