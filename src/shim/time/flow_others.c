/* Reads the state of other tenants and of the tenant's other cards, and publishes the flow's state to them. */
#include "base/clock.h"
#include "shim/link/port.h"
#include "shim/time/flow_state.h"
#include "shim/time/waits.h"

/* ---- the tenant's other cards ---- */

/* Work on another card may wait for a launch on this card, for example the kernels of one collective operation. The
 * flow assumes such a wait if that work is still running this long after the work on this card ended. */
#define AWAITED_NS (50 * LL_NS_PER_US)

void ll_flow_set_secondary_card(struct ll_flow *flow)
{
	pthread_mutex_lock(&flow->lock.mutex);
	flow->has_first = true;
	pthread_mutex_unlock(&flow->lock.mutex);
}

/* The tenant may be about to lose its turn on its first card, or a tenant that also works on this card may have the
 * turn there. Then no launch is made on this card, except launches that another card waits for. */
static void obey_first_card(struct ll_flow *flow)
{
	if (!ll_gang_closes(&flow->gang))
		return;
	flow->look.may_launch = flow->look.is_alone = false;
	flow->look.awaited = flow->gang.work;
}

/* When the card has no more launches of this program, as many launches may be made out of turn as another card waits
 * for. Otherwise the waiting kernel would occupy the other card until the turn comes. */
static void note_awaited(struct ll_flow *flow, bool is_idle, uint64_t now_ns)
{
	const struct ll_gang_work *work = &flow->look.awaited;
	if (flow->look.may_launch || !ll_port_is_fresh(work->seen_ns, now_ns))
		flow->awaited = 0;
	else if (is_idle && work->seen_ns > flow->idle_since_ns + AWAITED_NS)
		flow->awaited = work->launches;
}

void ll_flow_look(struct ll_flow *flow, uint64_t now_ns, bool is_idle)
{
	flow->gang = (struct ll_gang){0};
	ll_port_look(flow->claim, &flow->turn, now_ns, flow->queued.ns, &flow->look,
		     flow->is_wanting && flow->has_first ? &flow->gang : NULL);
	obey_first_card(flow);
	note_awaited(flow, is_idle, now_ns);
}

bool ll_flow_passes_awaited(struct ll_flow *flow)
{
	if (!flow->awaited || flow->is_in_debt)
		return false;
	flow->awaited--;
	return true;
}

/* ---- tenants that share this card by time slices ---- */

/* Bounds on the number of launches that may pass an open gate without a timing event. SLICED: while programs share by
 * time slices. There the number must be small enough for a useful sample, and large enough because timing events cost a
 * program with many small kernels some percent of its speed. */
enum { OPEN_MOST = 1000, SLICED_LEAST = 8, SLICED_UNKNOWN = 32, SLICED_MOST = 512 };

/* The parts of a queue (ll_timing_set_parts) while programs share by time slices. The progress of each program is then
 * measured (rules/share/regime.h). */
enum { SLICED_PARTS = 20 };

/* A program that pauses briefly still counts as sharing the card for this time. */
#define SLICED_NS (100 * LL_NS_PER_MS)

void ll_flow_tell_others(struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->look.is_sliced) {
		flow->sliced_by = flow->look.sharing;
		flow->sliced_ns = now_ns;
	}
	unsigned sliced_by = now_ns - flow->sliced_ns < SLICED_NS ? flow->sliced_by : 0;
	bool has_cap = flow->look.tokens_most_ns != INT64_MAX;
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next) {
		ll_timing_set_shared(context->timing, flow->look.sharing > 0, sliced_by);
		ll_timing_set_parts(context->timing, sliced_by && !has_cap ? SLICED_PARTS : 1);
	}
}

/* Returns a random number near `launches`. A program may repeat the same sequence of launches. Because the number
 * varies, each launch of the sequence is timed at some time. */
static uint64_t jitter_count(struct ll_flow *flow, uint64_t launches)
{
	flow->dice = flow->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (launches + 1) / 2 + (flow->dice >> 32) % launches;
}

/* Returns how many launches may pass before the next sample. Pauses of the other programs may be frequent and do not
 * restart the count. most: the number that follows from the present estimate of the launches' duration. */
static uint64_t next_sample(struct ll_flow *flow, uint64_t most)
{
	if (!flow->to_sample || flow->to_sample > 2 * most)
		flow->to_sample = jitter_count(flow, most);
	return flow->to_sample;
}

void ll_flow_set_open_limit(struct ll_flow *flow, const struct ll_timing *timing)
{
	bool is_sliced = flow->look.is_sliced;
	uint64_t least = is_sliced ? SLICED_LEAST : 1, most = is_sliced ? SLICED_MOST : OPEN_MOST;
	uint64_t mean_ns = ll_timing_mean_ns(timing), unknown = is_sliced ? SLICED_UNKNOWN : least;
	uint64_t limit = mean_ns ? LL_FLOW_OPEN_NS / mean_ns : unknown;
	limit = limit > most ? most : limit < least ? least : limit;
	atomic_store_explicit(&flow->count->limit, is_sliced ? next_sample(flow, limit) : limit, memory_order_relaxed);
}

/* ---- the launch mode: whether the program launches ahead of the card or waits for each kernel ---- */

/* A launch mode is computed from at least ENOUGH_LAUNCHES launches in at least WINDOW_NS. */
enum { ENOUGH_LAUNCHES = 32 };
#define WINDOW_NS (10 * LL_NS_PER_MS)

/* If a tenant's cards worked at the same time within this window, it needs its turns on all cards together
 * (daemon/arbiter/gang.h). */
#define TOGETHER_NS (1 * LL_NS_PER_S)

void ll_flow_note_launches(struct ll_flow *flow, uint64_t launches)
{
	uint64_t before = atomic_load_explicit(&flow->launch_mode.launches, memory_order_relaxed);
	uint64_t all = atomic_load_explicit(&flow->launch_mode.all_launches, memory_order_relaxed);
	atomic_store_explicit(&flow->launch_mode.launches, before + launches, memory_order_relaxed);
	atomic_store_explicit(&flow->launch_mode.all_launches, all + launches, memory_order_relaxed);
}

static bool is_recent(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && now_ns < at_ns + TOGETHER_NS;
}

/* Returns whether the tenant recently worked on other cards. Its kernels there may wait for kernels on this card. */
static bool works_on_other_cards(const struct ll_flow *flow, uint64_t now_ns)
{
	return is_recent(flow->look.awaited.seen_ns, now_ns) || is_recent(flow->gang.work.seen_ns, now_ns) ||
	       flow->gang.yields_to_gang;
}

/* If a program makes fewer launches than this between two waits, it counts as a program that waits for each launch.
 * Whether visits are better for it is measured (rules/share/regime.h). */
enum { FEW_LAUNCHES = 16 };

/* If the work between two waits is shorter than this, it ends within one time slice of the card (2.09 ms). Then the
 * program waits while the card runs slices of all other programs. */
#define SHORT_WORK_NS (2 * LL_NS_PER_MS)

static enum ll_launch_mode launch_mode_of(const struct ll_flow *flow, uint64_t launches, uint64_t waits,
					  uint64_t now_ns)
{
	if (launches < waits * FEW_LAUNCHES || works_on_other_cards(flow, now_ns))
		return LL_LAUNCH_MODE_SYNC;
	return flow->launch_mode.work_ns < waits * SHORT_WORK_NS ? LL_LAUNCH_MODE_SHORT : LL_LAUNCH_MODE_ASYNC;
}

void ll_flow_tell_launch_mode(struct ll_flow *flow, uint64_t now_ns)
{
	struct ll_flow_launch_mode *launch_mode = &flow->launch_mode;
	uint64_t launches = atomic_load_explicit(&launch_mode->launches, memory_order_relaxed);
	if (launches < ENOUGH_LAUNCHES || now_ns - launch_mode->since_ns < WINDOW_NS)
		return;
	uint64_t waits = ll_waits_read();
	enum ll_launch_mode told = launch_mode_of(flow, launches, waits - launch_mode->waits_before, now_ns);
	ll_port_set_launch_mode(flow->claim, told);
	launch_mode->is_ahead = told == LL_LAUNCH_MODE_ASYNC;
	atomic_store_explicit(&launch_mode->launches, 0, memory_order_relaxed);
	launch_mode->work_ns = 0;
	launch_mode->waits_before = waits;
	launch_mode->since_ns = now_ns;
}
