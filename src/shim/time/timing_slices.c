/* What a program's own work is where the hardware's time slices serve several programs at once. */
#include "shim/time/timing_state.h"

enum { TYPICAL_MOST = sizeof((struct ll_timing_typical *)NULL)->kinds / sizeof(uint64_t) };

void ll_timing_set_shared(struct ll_timing *timing, bool is_shared, unsigned sliced_by)
{
	timing->is_shared = is_shared;
	timing->sliced_by = sliced_by;
}

/* By what is known of the kinds now: of most the first tries tell too much. */
static void find_mean(struct ll_timing *timing, struct ll_timing_typical *typical)
{
	uint64_t sum_ns = 0, known = 0;
	for (uint32_t i = 0; i < TYPICAL_MOST && i < typical->count; i++) {
		const struct ll_kernel_estimate *kind = ll_kernel_estimates_find(&timing->kinds, typical->kinds[i]);
		if (!ll_kernel_estimate_is_known(kind))
			continue;
		sum_ns += kind->ns;
		known++;
	}
	typical->mean_ns = known ? sum_ns / known : 0;
}

void ll_timing_note_typical(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kind_name)
{
	struct ll_timing_track *track = timing->clock.is_blind ? NULL : ll_timing_track_find(timing, name);
	if (!track)
		return;
	struct ll_timing_typical *typical = &track->typical;
	typical->kinds[typical->count++ % TYPICAL_MOST] = kind_name;
	find_mean(timing, typical);
}

uint64_t ll_timing_batch_own_ns(struct ll_timing *timing, const struct ll_timing_track *track,
				const struct ll_timing_batch *batch, uint64_t span_ns)
{
	const struct ll_kernel_estimate *kind =
	    batch->kind ? ll_kernel_estimates_find(&timing->kinds, batch->kind) : NULL;
	uint64_t kind_ns = kind ? kind->ns : 0;
	if (!kind_ns && !track->typical.mean_ns && !track->mean_ns)
		return span_ns / (1 + timing->sliced_by);
	uint64_t ns = kind_ns ? batch->launches * kind_ns : batch->guess_ns;
	return ns < span_ns ? ns : span_ns;
}
