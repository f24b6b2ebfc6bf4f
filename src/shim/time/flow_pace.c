/* How the program launches, ahead of the card or waiting for each kernel: by that the other tenants decide. */
#include "base/clock.h"
#include "control/turns.h"
#include "shim/time/flow_state.h"
#include "shim/time/waits.h"

/* A pace is told from so many launches, in so long a time at least. */
enum { ENOUGH_LAUNCHES = 32 };
#define WINDOW_NS (10 * LL_NS_PER_MS)
/* A tenant whose cards worked at once within this time needs its turns on all of them together (ledger/gang.h). */
#define TOGETHER_NS (1 * LL_NS_PER_S)

void ll_flow_note_launches(struct ll_flow *flow, uint64_t launches)
{
	uint64_t before = atomic_load_explicit(&flow->pace.launches, memory_order_relaxed);
	atomic_store_explicit(&flow->pace.launches, before + launches, memory_order_relaxed);
}

static bool is_recent(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && now_ns < at_ns + TOGETHER_NS;
}

/* Kernels of the tenant on another card may wait for those here. */
static bool works_on_other_cards(const struct ll_flow *flow, uint64_t now_ns)
{
	return is_recent(flow->look.awaited.seen_ns, now_ns) || is_recent(flow->gang.work.seen_ns, now_ns) ||
	       flow->gang.is_led;
}

/* GPU time of a launch; 0: not known. */
static uint64_t mean_ns(const struct ll_flow *flow)
{
	uint64_t most_ns = 0;
	for (const struct ll_flow_context *context = flow->contexts; context; context = context->next) {
		uint64_t context_ns = ll_timing_mean_ns(context->timing);
		most_ns = context_ns > most_ns ? context_ns : most_ns;
	}
	return most_ns;
}

static enum ll_pace pace_of(const struct ll_flow *flow, const struct ll_turns_pace *facts, uint64_t now_ns)
{
	if (works_on_other_cards(flow, now_ns))
		return LL_PACE_UNKNOWN;
	return ll_turns_waits_for_each(facts) ? LL_PACE_WAITS : LL_PACE_AHEAD;
}

static void note_work(struct ll_flow *flow, uint64_t now_ns)
{
	struct ll_flow_pace *pace = &flow->pace;
	uint64_t ns = flow->queued.launches && pace->seen_ns ? now_ns - pace->seen_ns : 0;
	pace->work_ns += ns;
	pace->shared_ns += flow->look.sharing ? ns : 0;
	pace->seen_ns = now_ns;
}

void ll_flow_tell_pace(struct ll_flow *flow, uint64_t now_ns)
{
	struct ll_flow_pace *pace = &flow->pace;
	note_work(flow, now_ns);
	uint64_t launches = atomic_load_explicit(&pace->launches, memory_order_relaxed);
	if (launches < ENOUGH_LAUNCHES || now_ns - pace->since_ns < WINDOW_NS)
		return;
	struct ll_waits waits = ll_waits_take();
	/* Between two slices of a launch lies others' work. */
	if (pace->shared_ns < pace->work_ns / 2)
		pace->launch_ns = mean_ns(flow);
	struct ll_turns_pace facts = {.launches = launches,
				      .waits = waits.count - pace->waits_before,
				      .launch_ns = pace->launch_ns,
				      .shortest_round_ns = waits.shortest_ns};
	enum ll_pace told = pace_of(flow, &facts, now_ns);
	ll_port_set_pace(flow->claim, told);
	pace->is_ahead = told == LL_PACE_AHEAD;
	atomic_store_explicit(&pace->launches, 0, memory_order_relaxed);
	pace->waits_before = waits.count;
	pace->since_ns = now_ns;
	pace->work_ns = pace->shared_ns = 0;
}
