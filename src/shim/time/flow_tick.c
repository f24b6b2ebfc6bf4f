/* Looks at a flow: finds work that has ended and charges it, reads which tenant has the turn and the state of the
 * others, and publishes the flow's state to them. */
#include <stdlib.h>

#include "base/clock.h"
#include "rules/share/visits.h"
#include "shim/interpose/real.h"
#include "shim/link/port.h"
#include "shim/time/driver_calls.h"
#include "shim/time/flow_state.h"

/* ---- the contexts in which launches are timed, and charging the tenant ---- */

uint64_t ll_flow_own_ns(const struct ll_flow *flow, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t all_ns = end_ns > start_ns ? end_ns - start_ns : 0;
	uint64_t off_ns = ll_port_off_ns(flow->claim, start_ns, end_ns);
	if (ll_port_traced_ns(flow->claim))
		return all_ns - off_ns;
	uint64_t own_ns = ll_slices_own_ns(&flow->slices, start_ns, end_ns);
	return all_ns ? (uint64_t)((double)own_ns * (double)(all_ns - off_ns) / (double)all_ns) : 0;
}

static uint64_t part_of(uint64_t ns, uint64_t part_ns, uint64_t all_ns)
{
	part_ns = part_ns < all_ns ? part_ns : all_ns;
	return all_ns ? (uint64_t)((double)ns / (double)all_ns * (double)part_ns) : 0;
}

/* Returns the time in which the card worked for this program, in the part of the stretch from start_ns on. By the trace
 * it is the time on the card; of short kernels their own, because a program may wait between them while it is on the
 * card. ret_fresh_ns: the part of this time that no other stream has reported before. */
static uint64_t own_ns_of(const struct ll_flow *flow, const struct ll_timing_stretch *stretch, uint64_t start_ns,
			  uint64_t *ret_fresh_ns)
{
	uint64_t end_ns = stretch->end_ns, all_ns = end_ns - start_ns;
	uint64_t own_ns = ll_flow_own_ns(flow, start_ns, end_ns);
	bool is_traced = ll_port_traced_ns(flow->claim);
	if (is_traced && stretch->is_short && stretch->accounted_ns && stretch->accounted_ns < all_ns)
		own_ns = stretch->accounted_ns;
	else if (!is_traced && stretch->is_ours)
		own_ns = all_ns - ll_port_off_ns(flow->claim, start_ns, end_ns);
	*ret_fresh_ns = part_of(own_ns, is_traced ? stretch->fresh_span_ns : stretch->fresh_ns, all_ns);
	return own_ns;
}

static uint64_t smaller_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static void charge_now(struct ll_flow *flow, const struct ll_timing_stretch *stretch)
{
	bool is_traced = ll_port_traced_ns(flow->claim);
	uint64_t start_ns = is_traced ? stretch->end_ns - stretch->span_ns : stretch->start_ns;
	uint64_t end_ns = stretch->end_ns, fresh_ns;
	uint64_t own_ns = own_ns_of(flow, stretch, start_ns, &fresh_ns);
	flow->launch_mode.work_ns += fresh_ns;
	ll_port_note_end(flow->claim, end_ns);
	if (stretch->accounted_ns && !is_traced) {
		/* Each sample of a kernel may contain a time in which its context was off the card. */
		uint64_t on_ns = stretch->span_ns - ll_port_off_ns(flow->claim, end_ns - stretch->span_ns, end_ns);
		uint64_t accounted_ns = smaller_of(stretch->accounted_ns, on_ns);
		ll_port_note_work(flow->claim, end_ns - accounted_ns, end_ns,
				  smaller_of(stretch->fresh_accounted_ns, accounted_ns));
	} else {
		ll_port_note_work(flow->claim, end_ns - own_ns, end_ns, fresh_ns);
	}
	bool is_exclusive = flow->look.is_exclusive && flow->look.waiting_claims;
	if (is_exclusive || end_ns <= flow->visits_to_ns) /* the tenant is charged its visits (ll_flow_charge_visit) */
		return;
	if (start_ns < flow->visits_to_ns)
		own_ns = own_ns_of(flow, stretch, flow->visits_to_ns, &fresh_ns);
	flow->charged_ns = end_ns > flow->charged_ns ? end_ns : flow->charged_ns;
	ll_port_charge(flow->claim, end_ns - own_ns, end_ns, fresh_ns);
}

/* Stretches wait until the trace has come to their end. */
void ll_flow_charge_traced(struct ll_flow *flow)
{
	uint64_t traced_ns = ll_port_traced_ns(flow->claim);
	while (flow->untraced_count && (!traced_ns || flow->untraced[flow->untraced_first].end_ns <= traced_ns)) {
		struct ll_timing_stretch stretch = flow->untraced[flow->untraced_first];
		flow->untraced_first = (flow->untraced_first + 1) % LL_FLOW_UNTRACED;
		flow->untraced_count--;
		charge_now(flow, &stretch);
	}
}

void ll_flow_charge(void *of, const struct ll_timing_stretch *stretch)
{
	struct ll_flow *flow = of;
	flow->progress_ns = ll_now_ns();
	uint64_t traced_ns = ll_port_traced_ns(flow->claim);
	bool waits = flow->untraced_count || (traced_ns && stretch->end_ns > traced_ns);
	if (!waits || flow->untraced_count == LL_FLOW_UNTRACED) {
		charge_now(flow, stretch);
		return;
	}
	flow->untraced[(flow->untraced_first + flow->untraced_count++) % LL_FLOW_UNTRACED] = *stretch;
	/* it is counted as charged already, so that what still runs is not counted twice */
	flow->charged_ns = stretch->end_ns > flow->charged_ns ? stretch->end_ns : flow->charged_ns;
}

/* A tenant is charged its whole visit, even if its work does not fill the visit. It is not charged while it has the
 * turn and does not want the card. While a launch of another tenant runs on after that tenant's visit, both tenants are
 * charged equal parts. */
void ll_flow_charge_visit(struct ll_flow *flow, uint64_t now_ns)
{
	const struct ll_turn_look *look = &flow->look;
	uint64_t from_ns = flow->visit_ns, to_ns = now_ns;
	bool is_exclusive = look->is_exclusive && look->waiting_claims;
	bool is_visited = is_exclusive && flow->is_wanting && (look->is_holder || flow->turn.is_overrunning);
	if (from_ns && !is_visited && look->turn_since_ns > from_ns && look->turn_since_ns < now_ns)
		to_ns = look->turn_since_ns;
	if (from_ns && to_ns > from_ns) {
		uint64_t own_ns = (to_ns - from_ns) / (1 + look->sharing);
		ll_port_charge(flow->claim, to_ns - own_ns, to_ns, own_ns);
	}
	if (!is_visited)
		flow->visit_ns = 0;
	else if (from_ns)
		flow->visit_ns = now_ns;
	else
		flow->visit_ns = look->turn_since_ns > flow->charged_ns ? look->turn_since_ns : now_ns;
	if (is_exclusive)
		flow->visits_to_ns = flow->charged_ns = now_ns;
}

struct ll_flow_context *ll_flow_find_context(struct ll_flow *flow, const struct ll_cu_context *handle)
{
	for (struct ll_flow_context *context = flow->contexts; context && handle; context = context->next) {
		if (context->handle == handle)
			return context;
	}
	return NULL;
}

struct ll_flow_context *ll_flow_get_context(struct ll_flow *flow, struct ll_cu_context *handle)
{
	struct ll_flow_context *known = ll_flow_find_context(flow, handle);
	if (known || !handle)
		return known;
	struct ll_flow_context *context = calloc(1, sizeof *context);
	struct ll_timing *timing = context ? ll_timing_new(&flow->lock, ll_flow_charge, flow) : NULL;
	if (!timing) {
		free(context);
		return NULL;
	}
	*context = (struct ll_flow_context){.handle = handle, .timing = timing, .next = flow->contexts};
	flow->contexts = context;
	return context;
}

void ll_flow_use(struct ll_flow_context *context)
{
	if (context)
		context->users++;
}

static void free_unused(struct ll_flow_context *context)
{
	if (context->users || !context->is_gone)
		return;
	ll_timing_free(context->timing, false); /* the driver destroys its events together with the context */
	free(context);
}

void ll_flow_leave_unused(struct ll_flow_context *context)
{
	if (!context)
		return;
	context->users--;
	free_unused(context);
}

struct ll_flow_context *ll_flow_first_used(struct ll_flow *flow)
{
	ll_flow_use(flow->contexts);
	return flow->contexts;
}

struct ll_flow_context *ll_flow_next_used(struct ll_flow_context *context)
{
	struct ll_flow_context *next = context->is_gone ? NULL : context->next;
	ll_flow_leave_unused(context);
	ll_flow_use(next);
	return next;
}

void ll_flow_drop_context(struct ll_flow *flow, const struct ll_cu_context *handle)
{
	struct ll_flow_context **link = &flow->contexts;
	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	struct ll_flow_context *dropped = *link;
	if (!dropped)
		return;
	*link = dropped->next;
	if (flow->last_context == handle)
		flow->last_context = NULL;
	dropped->is_gone = true;
	free_unused(dropped);
}

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

/* Bounds on the number of launches that may pass an open gate without a timing event. SAMPLED: while programs share by
 * time slices, or streams have gaps. There the number must be small enough for a useful sample, and large enough
 * because timing events cost a program with many small kernels some percent of its speed. */
enum { OPEN_MOST = 1000, SAMPLED_LEAST = 8, SAMPLED_UNKNOWN = 32, SAMPLED_MOST = 512 };

/* The parts of a queue (ll_timing_set_parts) while programs share by time slices. The progress of each program is then
 * measured (rules/share/regime.h). */
enum { SLICED_PARTS = 20 };

/* A program that pauses briefly still counts as sharing the card for this time. */
#define SLICED_NS (100 * LL_NS_PER_MS)

/* A stream that copies or waits now and then counts as one with gaps for this time. */
#define GAPS_NS LL_NS_PER_S

bool ll_flow_is_sampled(const struct ll_flow *flow, uint64_t now_ns)
{
	return flow->look.is_sliced || (flow->gap_ns && now_ns < flow->gap_ns + GAPS_NS);
}

void ll_flow_tell_others(struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->look.is_sliced) {
		flow->sliced_by = flow->look.sharing;
		flow->sliced_ns = now_ns;
	}
	unsigned sliced_by = now_ns - flow->sliced_ns < SLICED_NS ? flow->sliced_by : 0;
	bool has_cap = flow->look.tokens_most_ns != INT64_MAX;
	bool is_sampled = sliced_by || ll_flow_is_sampled(flow, now_ns);
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next) {
		ll_timing_set_shared(context->timing, flow->look.sharing > 0, sliced_by, is_sampled);
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
	bool is_sampled = ll_flow_is_sampled(flow, ll_now_ns());
	uint64_t least = is_sampled ? SAMPLED_LEAST : 1, most = is_sampled ? SAMPLED_MOST : OPEN_MOST;
	uint64_t mean_ns = ll_timing_mean_ns(timing), unknown = is_sampled ? SAMPLED_UNKNOWN : least;
	uint64_t limit = mean_ns ? LL_FLOW_OPEN_NS / mean_ns : unknown;
	limit = limit > most ? most : limit < least ? least : limit;
	atomic_store_explicit(&flow->count->limit, is_sampled ? next_sample(flow, limit) : limit, memory_order_relaxed);
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

/* ---- looking ---- */

/* While another tenant waits for the card, launches use the result of a tick for FRESH_NS. While no other tenant waits,
 * they use it until the agent is LATE_NS late with its next tick. */
#define FRESH_NS (100 * LL_NS_PER_US)
#define LATE_NS (1 * LL_NS_PER_MS)
#define STALL_NS (50 * LL_NS_PER_MS)
#define CALM_NS (LL_FLOW_QUEUE_NS / 2) /* between two ticks while no other tenant wants the card */
/* Time between two ticks while the gate is open: a tenant that arrives wakes this program. */
#define OPEN_NS (5 * LL_NS_PER_MS)
/* The same while a tenant of a lower class may be held: it continues when this program's work has ended. */
#define ABOVE_NS (LL_NS_PER_MS / 2)
#define FAR_NS (4 * LL_NS_PER_MS) /* the longest time between two ticks if the cap's account is full enough */
/* While the gate is open, the agent asks for at least one timing event per EVENT_EACH_NS. */
#define EVENT_EACH_NS (10 * LL_NS_PER_MS)
#define EVENT_EACH_ABOVE_NS LL_NS_PER_MS
/* Time after a kernel's estimated end in which no timing event is recorded. A program that waits for each kernel
 * launches again within this time, so the event does not delay it. */
#define PATIENCE_NS (150 * LL_NS_PER_US)
#define ASLEEP_NS (1000 * LL_NS_PER_MS)
/* Each tick takes about 11 us of processor time. All tenants together must not use more than 5 % of a processor. */
#define WATCH_WAITS_NS (300 * LL_NS_PER_US)
#define WATCH_LEAST_NS (200 * LL_NS_PER_US)
#define WATCH_MOST_NS (400 * LL_NS_PER_US)
/* A program that synchronises after each kernel is idle for some tens of µs. It keeps the card during such a pause. */
#define GRACE_NS (200 * LL_NS_PER_US)
/* A program that launches ahead wants the card during such a pause between two visits. The next visit of another tenant
 * waits at most this long for work that passed an open gate. */
#define PAUSE_NS LL_VISIT_DRAIN_NS
/* After a debt, launches wait until the account holds at least this time. With less, the program would wait after each
 * kernel, and each kernel would need a timing event. */
#define IN_HAND_NS ((int64_t)LL_NS_PER_MS)

/* Uncounts prepaid launches that were not made. Call it before any other use of the timing. */
static void return_prepaid(struct ll_flow *flow)
{
	const struct ll_prepaid_kernel *what = &flow->prepaid.what;
	uint32_t left = ll_prepaid_return(&flow->prepaid);
	struct ll_flow_context *known = left ? ll_flow_find_context(flow, what->context) : NULL;
	if (!known)
		return;
	ll_timing_uncount(known->timing, what->stream, what->kernel_key, left);
	flow->queued = ll_timing_queued(known->timing);
}

void ll_flow_lock(struct ll_flow *flow)
{
	pthread_mutex_lock(&flow->lock.mutex);
	return_prepaid(flow);
}

struct progress {
	struct ll_timing_queue queued;
	bool is_idle;
	bool has_work; /* ll_timing_has_work is true for a context */
	bool is_free;  /* some of the work does not wait for the gate on the card */
};

/* Returns the time between two ticks, and between two timing events, while no other tenant wants the card. It is
 * CALM_NS, or more if the cap's account holds much more than that. */
static uint64_t calm_ns(const struct ll_flow *flow)
{
	int64_t half_ns = flow->look.tokens_ns / 2;
	bool is_capped = flow->look.tokens_most_ns != INT64_MAX;
	if (!is_capped || flow->look.queue_bound_ns || half_ns < (int64_t)CALM_NS)
		return CALM_NS;
	return half_ns < (int64_t)FAR_NS ? (uint64_t)half_ns : FAR_NS;
}

/* Returns the work per timing event. If no other tenant waits until the queue is empty, work may be charged later, so
 * fewer timing events are needed. */
static uint64_t batch_ns(const struct ll_flow *flow)
{
	if (flow->look.queue_bound_ns)
		return flow->look.queue_bound_ns / 2;
	if (flow->look.is_exclusive)
		return LL_TIMING_EVERY_NS;
	return flow->look.waiting_claims ? LL_FLOW_BATCH_TURNS_NS : calm_ns(flow);
}

static struct progress harvest_contexts(struct ll_flow *flow, uint64_t now_ns)
{
	struct progress progress = {.is_idle = flow->launching == 0};
	flow->is_blind = false;
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next) {
		ll_timing_harvest(context->timing);
		if (!flow->look.is_exclusive)
			ll_timing_forget_waits(context->timing);
		ll_timing_set_every(context->timing, batch_ns(flow));
		ll_timing_set_patience(context->timing, flow->look.is_exclusive ? PATIENCE_NS : 0);
		ll_timing_set_watched(context->timing, flow->max_kernel_ns);
		flow->is_blind |= ll_timing_is_blind(context->timing);
		if (!ll_timing_is_idle(context->timing)) {
			progress.is_idle = false;
			progress.has_work |= ll_timing_has_work(context->timing, now_ns);
			progress.is_free |= flow->look.is_exclusive && ll_timing_has_passed_gate(context->timing);
			struct ll_timing_queue queued = ll_timing_queued(context->timing);
			progress.queued.ns += queued.ns;
			progress.queued.launches += queued.launches;
		}
	}
	return progress;
}

/* Returns whether the flow knows of no launch. Launches that passed an open gate may not be in the timing yet. */
static bool has_no_launches(const struct ll_flow *flow)
{
	bool is_idle = !flow->launching && !atomic_load_explicit(&flow->count->launches, memory_order_relaxed);
	for (const struct ll_flow_context *context = flow->contexts; context; context = context->next)
		is_idle &= ll_timing_is_idle(context->timing);
	return is_idle;
}

/*
 * Returns the progress while all work waits on the card: nothing has changed since the last tick. If a program launches
 * ahead, or pauses for a lower class, and was idle at the end of its visit, it stays idle until its next launch. A
 * program that waits for each launch is idle between any two launches. It stops wanting the card in its visits, which
 * have a longer grace (rules/share/visits.h). A program that launches ahead reports again in each visit that its queue
 * is empty.
 */
static struct progress progress_of_held(const struct ll_flow *flow)
{
	bool is_paused = flow->turn.paused_since_ns;
	bool may_be_idle = flow->launch_mode.is_ahead || is_paused;
	bool is_idle = may_be_idle && flow->idle_since_ns && has_no_launches(flow);
	return (struct progress){.queued = flow->queued, .is_idle = is_idle, .has_work = !is_idle || !is_paused};
}

/* Of what the gate's line counts, the stream is not known. */
static void note_gaps(struct ll_flow *flow)
{
	uint64_t gaps = atomic_load_explicit(&ll_gate_line.gaps, memory_order_relaxed);
	if (flow->count != &ll_gate_line.count || gaps == flow->gaps)
		return;
	flow->gaps = gaps;
	flow->gap_ns = ll_now_ns();
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next)
		ll_timing_note_gap_anywhere(context->timing);
}

void ll_flow_note_untimed(struct ll_flow *flow)
{
	note_gaps(flow);
	uint64_t launches = atomic_exchange_explicit(&flow->count->launches, 0, memory_order_relaxed);
	struct ll_flow_context *context = launches ? ll_flow_get_context(flow, flow->last_context) : NULL;
	ll_flow_note_launches(flow, launches);
	if (flow->to_sample) /* at least one stays until the sample is taken */
		flow->to_sample -= launches < flow->to_sample ? launches : flow->to_sample - 1;
	if (context)
		ll_timing_add_untimed(context->timing, flow->last_stream, (uint32_t)launches);
}

bool ll_flow_is_card_gate_shut(const struct ll_flow *flow)
{
	const _Atomic uint32_t *word = ll_port_card_word(flow->claim);
	return word && !(atomic_load_explicit(word, memory_order_relaxed) & LL_VISIT_WORD_OPEN);
}

/* Returns whether all work of the program waits on the card. Then no work can have ended, and the agent must not call
 * the driver. A thread of the program that frees memory waits in the driver until its streams continue, and a thread
 * that asks about an event would wait behind that thread. */
static bool is_held_back(const struct ll_flow *flow)
{
	return flow->look.is_exclusive && !flow->turn.is_overrunning && ll_flow_is_card_gate_shut(flow);
}

static void close_tails_of(const struct ll_flow_context *context, bool at_once)
{
	struct ll_cu_context *before;
	if (ll_real()->cuCtxPushCurrent_v2(context->handle) != LL_CUDA_SUCCESS)
		return;
	ll_timing_close_tails(context->timing, at_once);
	ll_real()->cuCtxPopCurrent_v2(&before);
}

/*
 * The work before a tail may have just ended. A timing event that is recorded while the tail runs gives the tail's
 * duration. While the gate is open, this duration is not needed, and recording the event would delay the thread that
 * launches. So no event is recorded until the agent asks for one at the gate.
 */
void ll_flow_close_tails(struct ll_flow *flow)
{
	return_prepaid(flow);
	if (is_held_back(flow))
		return;
	bool is_open = atomic_load_explicit(ll_port_gate(flow->claim), memory_order_relaxed) == LL_GATE_OPEN;
	if (!is_open)
		ll_flow_note_untimed(flow);
	bool may_record = !is_open && !ll_captures_go_on(&flow->captures);
	bool at_once =
	    flow->turn.ending_since_ns || ll_gang_closes(&flow->gang); /* other tenants wait for the end of this work */
	LL_FLOW_EACH_USED (flow, context) {
		if (may_record)
			ll_timing_harvest(context->timing);
		if (may_record && ll_timing_has_tails(context->timing, at_once))
			close_tails_of(context, at_once);
		ll_timing_leave_tails(context->timing);
	}
}

/* Returns what the account must hold before launches continue after a debt: IN_HAND_NS, or half of the account's
 * maximum if that is less. */
static int64_t in_hand_ns(const struct ll_flow *flow)
{
	int64_t half_ns = flow->look.tokens_most_ns / 2;
	return half_ns < IN_HAND_NS ? half_ns : IN_HAND_NS;
}

static void note_debt(struct ll_flow *flow)
{
	if (flow->look.tokens_ns <= 0)
		flow->is_in_debt = true;
	else if (flow->look.tokens_ns >= in_hand_ns(flow))
		flow->is_in_debt = false;
}

/* Returns how long the claim keeps wanting an idle card. Work on another card of the tenant may wait for the next
 * launch on this card. If the turn here were given away, that work would wait until the next turn. */
static uint64_t grace_ns(const struct ll_flow *flow, uint64_t now_ns)
{
	if (!flow->look.waiting_claims)
		return CALM_NS;
	return ll_port_is_fresh(flow->look.awaited.seen_ns, now_ns) ? LL_GANG_PAUSE_NS : GRACE_NS;
}

/*
 * Returns the time that is compared with the grace. If a program launches ahead, its visits are shorter than the grace:
 * loadlined ends each visit as soon as the queue is empty, and another visit follows. Such a program wants the card
 * until it has been idle for PAUSE_NS. If it rested sooner, the other tenants' gates would open in each short pause,
 * and the launches that pass them would run beside its next launches.
 */
static uint64_t idle_ns_for_grace(const struct ll_flow *flow, uint64_t now_ns)
{
	uint64_t idle_ns = now_ns - flow->idle_since_ns, turn_since_ns = flow->look.turn_since_ns;
	bool has_short_visits = flow->look.is_exclusive && flow->launch_mode.is_ahead && !flow->turn.paused_since_ns;
	if (!has_short_visits || idle_ns >= PAUSE_NS)
		return idle_ns;
	uint64_t visited_ns = flow->look.is_holder && now_ns > turn_since_ns ? now_ns - turn_since_ns : 0;
	return visited_ns < idle_ns ? visited_ns : idle_ns;
}

/* Returns whether the claim must stop wanting the card. */
static bool shall_rest(const struct ll_flow *flow, uint64_t now_ns)
{
	if (!flow->idle_since_ns)
		return false;
	if (flow->is_in_debt)
		return true;
	if (flow->waiting)
		return false;
	return idle_ns_for_grace(flow, now_ns) >= grace_ns(flow, now_ns);
}

static uint64_t event_each_ns(const struct ll_flow *flow)
{
	return flow->look.is_above ? EVENT_EACH_ABOVE_NS : EVENT_EACH_NS;
}

/* Makes the claim stop wanting the card. The program's visit ends, because the next tick may be a second later and the
 * program must not be charged that second. */
static void rest_claim(struct ll_flow *flow, uint64_t now_ns)
{
	ll_port_rest(flow->claim, now_ns);
	flow->is_wanting = false;
	flow->visit_ns = 0;
}

/* Opens, shuts and checks the gate. If no launch came since the agent last asked for a timing event, and the card is
 * idle, the program has stopped launching. */
static void tend_open_gate(struct ll_flow *flow, uint64_t now_ns)
{
	uint32_t gate = atomic_load(ll_port_gate(flow->claim));
	if (gate != LL_GATE_SHUT && !flow->look.is_alone) { /* for instance because a cap was set */
		ll_port_shut_gate(flow->claim);
		ll_flow_note_untimed(flow);
	} else if (gate == LL_GATE_OPEN && now_ns - flow->recorded_ns >= event_each_ns(flow)) {
		flow->recorded_ns = now_ns;
		ll_port_open_gate(flow->claim, LL_GATE_TIMED);
	} else if (gate == LL_GATE_TIMED && now_ns - flow->recorded_ns >= event_each_ns(flow) && flow->idle_since_ns) {
		rest_claim(flow, now_ns);
	} else if (gate == LL_GATE_SHUT && flow->look.is_alone && flow->is_wanting && !flow->is_blind &&
		   !flow->max_kernel_ns) { /* no timing event follows a launch that passes an open gate */
		flow->recorded_ns = now_ns;
		ll_port_open_gate(flow->claim, LL_GATE_OPEN);
	}
}

/* Returns the time until the next tick during the program's own visit. From the end of the program's work until this
 * tick, the card is idle. A program that launches ahead has work at least until half of its queue is done. A program
 * that waits for each kernel keeps its visit until it has had no work for the grace time of rules/share/visits.h. */
static uint64_t watch_ns(const struct ll_flow *flow)
{
	uint64_t half_ns = flow->queued.ns / 2;
	if (flow->waiting || flow->turn.ending_since_ns)
		return LL_FLOW_POLL_NS;
	if (!flow->launch_mode.is_ahead)
		return WATCH_WAITS_NS;
	return half_ns < WATCH_LEAST_NS ? WATCH_LEAST_NS : half_ns > WATCH_MOST_NS ? WATCH_MOST_NS : half_ns;
}

/* How soon a launch that waits for work on the card looks again. While the program is off the card, nothing ends. */
static uint64_t poll_ns(const struct ll_flow *flow)
{
	return ll_port_is_off(flow->claim) ? LL_FLOW_OFF_NS : LL_FLOW_POLL_NS;
}

static uint64_t next_tick_ns(const struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->is_blind)
		return now_ns + LATE_NS;
	if (!flow->is_wanting)
		return now_ns + ASLEEP_NS;
	if (flow->look.is_exclusive && !flow->look.is_holder)
		return now_ns + (flow->turn.is_overrunning ? LATE_NS : LL_FLOW_HELD_NS);
	if (flow->look.waiting_claims && flow->look.is_exclusive)
		return now_ns + watch_ns(flow);
	if (flow->look.waiting_claims || flow->waiting)
		return now_ns + poll_ns(flow);
	bool is_open = atomic_load_explicit(ll_port_gate(flow->claim), memory_order_relaxed) != LL_GATE_SHUT;
	uint64_t open_ns = flow->look.is_above ? ABOVE_NS : OPEN_NS;
	return now_ns + (is_open ? open_ns : calm_ns(flow));
}

/* Returns the bound on queued work. It is at least two batches, because the whole open batch counts as queued. */
static uint64_t most_queued_ns(const struct ll_flow *flow)
{
	return flow->look.waiting_claims ? LL_FLOW_QUEUE_NS : 2 * calm_ns(flow);
}

/*
 * Returns whether one more launch may be queued. If the first kernel is long, a second may be queued if the account can
 * pay for the first. Otherwise the card would wait for the host after each kernel.
 */
static bool may_queue(const struct ll_flow *flow)
{
	if (flow->look.queue_bound_ns)
		return flow->queued.ns < flow->look.queue_bound_ns || flow->queued.launches < 2;
	bool may_follow = flow->queued.launches < 2 && flow->look.tokens_ns > (int64_t)flow->queued.ns;
	return flow->queued.ns < most_queued_ns(flow) || may_follow;
}

/* Returns how long the work that is not charged yet has run. Work that was launched on an idle card cannot have begun
 * earlier. */
static uint64_t running_ns(struct ll_flow *flow, bool is_idle, uint64_t now_ns)
{
	if (flow->is_blind) /* the agent charges (tend_blind) */
		return 0;
	if (is_idle || flow->idle_since_ns) {
		flow->charged_ns = now_ns;
		return 0;
	}
	return ll_flow_own_ns(flow, flow->charged_ns, now_ns);
}

/* Returns the number of launches on the card for the claim. It is at least 1 while there is any work. */
static uint32_t launches_of(const struct progress *progress)
{
	uint64_t launches = progress->queued.launches < UINT32_MAX ? progress->queued.launches : UINT32_MAX;
	return launches || progress->is_idle ? (uint32_t)launches : 1;
}

/* Returns a lower bound of the number of launches that the card has finished. It never decreases. */
static uint64_t completed_of(const struct ll_flow *flow, const struct progress *progress)
{
	uint64_t all = atomic_load_explicit(&flow->launch_mode.all_launches, memory_order_relaxed);
	uint64_t left = progress->is_idle ? 0 : progress->queued.launches;
	uint64_t completed = all > left ? all - left : 0;
	return completed > flow->turn.completed_launches ? completed : flow->turn.completed_launches;
}

/* Notes since when the program has had no work on the card. If a program launches ahead, its last launches are not
 * timed at once, so their estimated end is used. */
static void note_queue_empty(struct ll_flow *flow, const struct progress *progress, uint64_t now_ns)
{
	bool queue_is_empty = flow->launch_mode.is_ahead ? !progress->has_work && !flow->waiting : progress->is_idle;
	if (!queue_is_empty)
		flow->turn.queue_empty_since_ns = 0;
	else if (!flow->turn
		      .queue_empty_since_ns) /* the last work was launched so long ago, or is known to have ended */
		flow->turn.queue_empty_since_ns = now_ns - (flow->launch_mode.is_ahead ? 0 : PATIENCE_NS);
}

/* Reports the waiting time of launches that wait on the card for their job's visit. A launch that waits in the host
 * reports its own time. */
static void note_wait_on_card(const struct ll_flow *flow, uint64_t now_ns)
{
	bool waits = flow->look.is_exclusive && !flow->look.is_holder && flow->is_wanting && !flow->waiting;
	if (waits && flow->ticked_ns && now_ns > flow->ticked_ns)
		ll_port_note_wait(flow->claim, flow->is_in_debt ? LL_WAIT_CAP : LL_WAIT_TURN, now_ns - flow->ticked_ns);
}

uint64_t ll_flow_tick(struct ll_flow *flow, uint64_t now_ns)
{
	return_prepaid(flow);
	note_wait_on_card(flow, now_ns);
	struct progress progress = is_held_back(flow) ? progress_of_held(flow) : harvest_contexts(flow, now_ns);
	bool is_open = atomic_load_explicit(ll_port_gate(flow->claim), memory_order_relaxed) != LL_GATE_SHUT;
	flow->ticked_ns = now_ns;
	flow->queued = progress.queued;
	if (may_queue(flow))
		flow->progress_ns = now_ns;
	flow->turn.running_ns = running_ns(flow, progress.is_idle, now_ns);
	if (!progress.is_idle)
		flow->idle_since_ns = 0;
	else if (!flow->idle_since_ns)
		flow->idle_since_ns = now_ns;
	flow->turn.queued_launches = launches_of(&progress);
	flow->turn.completed_launches = completed_of(flow, &progress);
	ll_flow_tell_launch_mode(flow, now_ns);
	note_queue_empty(flow, &progress, now_ns);
	flow->turn.is_overrunning = progress.is_free;
	if (flow->is_wanting) /* said again: a page that a program damaged may have lost it */
		ll_port_want(flow->claim, now_ns);
	ll_flow_look(flow, now_ns, progress.is_idle);
	ll_flow_tell_others(flow, now_ns);
	ll_flow_charge_visit(flow, now_ns);
	ll_flow_charge_traced(flow);
	ll_slices_note(&flow->slices, now_ns, flow->look.sharing);
	note_debt(flow);
	if (flow->is_wanting && !is_open && shall_rest(flow, now_ns))
		rest_claim(flow, now_ns);
	tend_open_gate(flow, now_ns);
	return next_tick_ns(flow, now_ns);
}

bool ll_flow_may_go(const struct ll_flow *flow)
{
	return flow->look.may_launch && !flow->is_in_debt && may_queue(flow);
}

bool ll_flow_passes_stalled_queue(struct ll_flow *flow, uint64_t now_ns)
{
	uint64_t stalled_ns = STALL_NS + 2 * flow->queued.ns;
	if (!flow->look.may_launch || flow->is_in_debt || now_ns < flow->progress_ns + stalled_ns)
		return false;
	flow->progress_ns = now_ns;
	return true;
}

/* Writes the claim each time, because a faulty program may have damaged the page. */
void ll_flow_want(struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->is_in_debt)
		return;
	ll_port_want(flow->claim, now_ns);
	if (!flow->is_wanting)
		ll_port_wake(flow->claim);
	flow->is_wanting = true;
}

void ll_flow_note_launching(struct ll_flow *flow)
{
	flow->idle_since_ns = 0;
	ll_port_note_launch(flow->claim);
}

uint64_t ll_flow_sleep_until_ns(const struct ll_flow *flow, uint64_t now_ns)
{
	if (!flow->is_in_debt)
		return now_ns + poll_ns(flow);
	uint64_t wait_ns = (uint64_t)in_hand_ns(flow) - (uint64_t)flow->look.tokens_ns; /* at a cap of 100 % */
	return now_ns + (wait_ns < CALM_NS ? wait_ns : CALM_NS);
}

bool ll_flow_is_in_turn(const struct ll_flow *flow, uint64_t now_ns)
{
	uint64_t fresh_ns = flow->look.waiting_claims ? FRESH_NS : calm_ns(flow) + LATE_NS;
	return flow->is_wanting && now_ns - flow->ticked_ns < fresh_ns && ll_flow_may_go(flow) &&
	       (flow->look.is_sliced || flow->look.queue_bound_ns || ll_port_is_in_turn(flow->claim));
}
