/* What a flow does where the hardware's time slices serve several programs: its gate is open, and its timing events are
 * few. */
#include "base/clock.h"
#include "shim/time/flow_state.h"

/* Launches that pass an open gate untimed: at most; and in slices, where a timing event costs a program that launches
 * many small kernels some percent. */
enum { OPEN_MOST = 1000, SLICED_LEAST = 8, SLICED_MOST = 512 };

/* Who shares the card by slices with a program that pauses now and then does so before it is seen to be back. */
#define SLICED_NS (100 * LL_NS_PER_MS)

void ll_flow_tell_others(struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->look.is_sliced) {
		flow->sliced_by = flow->look.sharing;
		flow->sliced_ns = now_ns;
	}
	unsigned sliced_by = now_ns - flow->sliced_ns < SLICED_NS ? flow->sliced_by : 0;
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next)
		ll_timing_set_shared(context->timing, flow->look.sharing > 0, sliced_by);
}

/* A program launches the same over and over: after now more and now fewer launches each of them comes to be looked at.
 */
static uint64_t jitter_count(struct ll_flow *flow, uint64_t launches)
{
	flow->dice = flow->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (launches + 1) / 2 + (flow->dice >> 32) % launches;
}

void ll_flow_set_open_limit(struct ll_flow *flow, const struct ll_timing *timing)
{
	bool is_sliced = flow->look.is_sliced;
	uint64_t least = is_sliced ? SLICED_LEAST : 1, most = is_sliced ? SLICED_MOST : OPEN_MOST;
	uint64_t mean_ns = ll_timing_mean_ns(timing), unknown = is_sliced ? most : least;
	uint64_t limit = mean_ns ? LL_FLOW_OPEN_NS / mean_ns : unknown;
	limit = limit > most ? most : limit < least ? least : limit;
	atomic_store_explicit(&flow->count->limit, is_sliced ? jitter_count(flow, limit) : limit, memory_order_relaxed);
}
