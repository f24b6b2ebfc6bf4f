#include "shim/time/flow.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/scope.h"
#include "control/tokens.h"
#include "ledger/port.h"
#include "shim/interpose/real.h"
#include "shim/time/agent.h"
#include "shim/time/flow_state.h"

/* How long a tick's findings serve the launches that follow while somebody waits for the card; while nobody does, until
 * the agent is so late with the next one: who launches looks only then. */
#define FRESH_NS (100 * LL_NS_PER_US)
#define LATE_NS (1 * LL_NS_PER_MS)
#define STALL_NS (50 * LL_NS_PER_MS)
#define CALM_NS (LL_FLOW_QUEUE_NS / 2)    /* while nobody else wants the card */
#define OPEN_NS (5 * LL_NS_PER_MS)        /* behind an open gate: a program that comes wakes us */
#define FAR_NS (4 * LL_NS_PER_MS)         /* at most, under a cap that is far */
#define EVENT_EACH_NS (10 * LL_NS_PER_MS) /* an open gate: at least one timing event in each */
/* A program that waits for each kernel is not held up by timing events for so long after each. */
#define PATIENCE_NS (150 * LL_NS_PER_US)
#define ASLEEP_NS (1000 * LL_NS_PER_MS)
/* Each look costs some 11 us of a processor: all tenants together shall not take more than 5 % of one. */
#define WATCH_WAITS_NS (300 * LL_NS_PER_US)
#define WATCH_LEAST_NS (200 * LL_NS_PER_US)
#define WATCH_MOST_NS (400 * LL_NS_PER_US)
/* The agent looks at least each second: later than this it hangs in the driver. */
#define DEAF_NS (1500 * LL_NS_PER_MS)
/* A program that synchronises after each kernel is idle for some tens of µs: it keeps the card through this. */
#define GRACE_NS (200 * LL_NS_PER_US)
/* After a debt work goes on with this much in hand: single kernels between two waits would cost more in timing events.
 */
#define IN_HAND_NS ((int64_t)LL_NS_PER_MS)

int ll_flow_new(struct ll_claim *claim, struct ll_gate_count *count, const struct ll_flow_owner *owner,
		struct ll_flow **ret_flow)
{
	struct ll_flow *flow = calloc(1, sizeof *flow);
	if (!flow)
		return -ENOMEM;
	flow->claim = claim;
	flow->count = count;
	flow->owner = owner;
	atomic_store(&count->launches, 0);
	atomic_store(&count->limit, 0);
	ll_timing_lock_init(&flow->lock);
	int rc = ll_agent_start(flow);
	if (rc < 0) {
		ll_timing_lock_fini(&flow->lock);
		free(flow);
		return rc;
	}
	*ret_flow = flow;
	return 0;
}

void ll_flow_limit_kernels(struct ll_flow *flow, uint64_t max_kernel_ns, bool kills)
{
	pthread_mutex_lock(&flow->lock.mutex);
	flow->max_kernel_ns = max_kernel_ns;
	flow->kills_at_max_kernel = kills;
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_flow_end(struct ll_flow *flow)
{
	ll_agent_stop(flow);
	if (!flow->is_lost)
		ll_port_rest(flow->claim, ll_now_ns());
}

_Atomic uint32_t *ll_flow_gate(struct ll_flow *flow)
{
	return ll_port_gate(flow->claim);
}

bool ll_flow_passes_open_gate(struct ll_flow *flow)
{
	return atomic_load_explicit(ll_flow_gate(flow), memory_order_relaxed) == LL_GATE_OPEN &&
	       ll_gate_count_one(flow->count);
}

/* What was counted ahead and did not come: before anything else is done with the timing events. */
static void take_back(struct ll_flow *flow)
{
	const struct ll_advance_kind *what = &flow->advance.what;
	uint32_t left = ll_advance_take_back(&flow->advance);
	struct ll_flow_context *known = left ? ll_flow_find_context(flow, what->context) : NULL;
	if (!known)
		return;
	ll_timing_uncount(known->timing, what->stream, what->kind, left);
	flow->queued = ll_timing_queued(known->timing);
}

void ll_flow_lock(struct ll_flow *flow)
{
	pthread_mutex_lock(&flow->lock.mutex);
	take_back(flow);
}

struct progress {
	struct ll_timing_queue queued;
	bool is_idle;
	bool has_work; /* the same as far as is known at once */
	bool is_free;  /* no gate on the card holds all of it back */
};

/* Between two looks, and two timing events, while nobody else wants the card. What the account of a cap holds lasts for
 * as long at least. */
static uint64_t calm_ns(const struct ll_flow *flow)
{
	int64_t half_ns = flow->look.tokens_ns / 2;
	bool is_capped = flow->look.tokens_most_ns != INT64_MAX;
	if (!is_capped || flow->look.priority == LL_PRIORITY_LOW || half_ns < (int64_t)CALM_NS)
		return CALM_NS;
	return half_ns < (int64_t)FAR_NS ? (uint64_t)half_ns : FAR_NS;
}

/* Nobody waits for the queue to empty: work may be charged later, with fewer timing events. */
static uint64_t batch_ns(const struct ll_flow *flow)
{
	if (flow->look.priority == LL_PRIORITY_LOW)
		return LL_TIMING_EVERY_NS;
	if (flow->look.is_by_visits)
		return LL_TIMING_EVERY_NS;
	return flow->look.waiting_claims ? LL_FLOW_BATCH_TURNS_NS : calm_ns(flow);
}

static struct progress harvest_contexts(struct ll_flow *flow, uint64_t now_ns)
{
	struct progress progress = {.is_idle = flow->launching == 0};
	flow->is_blind = false;
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next) {
		ll_timing_harvest(context->timing);
		if (!flow->look.is_by_visits)
			ll_timing_forget_waits(context->timing);
		ll_timing_set_every(context->timing, batch_ns(flow));
		ll_timing_set_patience(context->timing, flow->look.is_by_visits ? PATIENCE_NS : 0);
		ll_timing_set_watched(context->timing, flow->max_kernel_ns);
		flow->is_blind |= ll_timing_is_blind(context->timing);
		if (!ll_timing_is_idle(context->timing)) {
			progress.is_idle = false;
			progress.has_work |= ll_timing_has_work(context->timing, now_ns);
			progress.is_free |= flow->look.is_by_visits && ll_timing_is_let_through(context->timing);
			struct ll_timing_queue queued = ll_timing_queued(context->timing);
			progress.queued.ns += queued.ns;
			progress.queued.launches += queued.launches;
		}
	}
	return progress;
}

/* Nothing moves on. What was idle when its visit ended is idle until it launches. */
static struct progress progress_of_held(const struct ll_flow *flow)
{
	bool is_idle = flow->turn.paused_since_ns && flow->idle_since_ns && !flow->launching;
	return (struct progress){.queued = flow->queued, .is_idle = is_idle, .has_work = !is_idle};
}

void ll_flow_note_untimed(struct ll_flow *flow)
{
	uint64_t launches = atomic_exchange_explicit(&flow->count->launches, 0, memory_order_relaxed);
	struct ll_flow_context *context = launches ? ll_flow_get_context(flow, flow->last_context) : NULL;
	ll_flow_note_launches(flow, launches);
	if (context)
		ll_timing_add_untimed(context->timing, flow->last_stream, (uint32_t)launches);
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
 * What stands before a tail may have ended just now: a timing event that comes while the tail is at work tells how long
 * it is. Behind an open gate nobody needs to know, and a timing event would hold up who launches: not until the gate
 * asks for a timing event.
 */
void ll_flow_close_tails(struct ll_flow *flow)
{
	take_back(flow);
	if (ll_flow_is_held_back(flow))
		return;
	bool is_open = atomic_load_explicit(ll_port_gate(flow->claim), memory_order_relaxed) == LL_GATE_OPEN;
	if (!is_open)
		ll_flow_note_untimed(flow);
	bool may_record = !is_open && !ll_captures_go_on(&flow->captures);
	bool at_once = flow->turn.ending_since_ns || ll_gang_closes(&flow->gang); /* others wait for what is left */
	LL_FLOW_EACH_USED (flow, context) {
		if (may_record)
			ll_timing_harvest(context->timing);
		if (may_record && ll_timing_has_tails(context->timing, at_once))
			close_tails_of(context, at_once);
		ll_timing_leave_tails(context->timing);
	}
}

/* Less, where a small cap's account never holds as much. */
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

/* What works on another card of the tenant may wait for the next launch here, and would be left alone there. */
static uint64_t grace_ns(const struct ll_flow *flow, uint64_t now_ns)
{
	if (!flow->look.waiting_claims)
		return CALM_NS;
	return ll_port_is_fresh(flow->look.awaited.seen_ns, now_ns) ? LL_GANG_PAUSE_NS : GRACE_NS;
}

/* Whether the claim shall stop wanting the card. */
static bool shall_rest(const struct ll_flow *flow, uint64_t now_ns)
{
	if (!flow->idle_since_ns)
		return false;
	if (flow->is_in_debt)
		return true;
	if (flow->waiting)
		return false;
	uint64_t idle_ns = now_ns - flow->idle_since_ns;
	return idle_ns >= grace_ns(flow, now_ns);
}

/* An open gate that was not passed since it last asked for a timing event: the program has stopped launching. */
static void tend_open_gate(struct ll_flow *flow, uint64_t now_ns)
{
	uint32_t gate = atomic_load(ll_port_gate(flow->claim));
	if (gate != LL_GATE_SHUT && !flow->look.is_alone) { /* a cap is new, for instance */
		ll_port_shut_gate(flow->claim);
		ll_flow_note_untimed(flow);
	} else if (gate == LL_GATE_OPEN && now_ns - flow->recorded_ns >= EVENT_EACH_NS) {
		flow->recorded_ns = now_ns;
		ll_port_open_gate(flow->claim, LL_GATE_TIMED, now_ns);
	} else if (gate == LL_GATE_TIMED && now_ns - flow->recorded_ns >= EVENT_EACH_NS && flow->idle_since_ns) {
		ll_port_rest(flow->claim, now_ns);
		flow->is_wanting = false;
	} else if (gate == LL_GATE_SHUT && flow->look.is_alone && flow->is_wanting && !flow->is_blind &&
		   !flow->max_kernel_ns) { /* what passes an open gate has no timing event behind it */
		flow->recorded_ns = now_ns;
		ll_port_open_gate(flow->claim, LL_GATE_OPEN, now_ns);
	}
}

/* Until the end of our visit is looked for again. It does not run dry before half of what is queued is done; and of who
 * waits for each kernel no visit ends before it has had nothing queued for the grace of control/visits.h. At its end
 * the card stands idle until it is seen that all is done. */
static uint64_t watch_ns(const struct ll_flow *flow)
{
	uint64_t half_ns = flow->queued.ns / 2;
	if (flow->waiting || flow->turn.ending_since_ns)
		return LL_FLOW_POLL_NS;
	if (!flow->pace.is_ahead)
		return WATCH_WAITS_NS;
	return half_ns < WATCH_LEAST_NS ? WATCH_LEAST_NS : half_ns > WATCH_MOST_NS ? WATCH_MOST_NS : half_ns;
}

static uint64_t next_tick_ns(const struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->is_blind)
		return now_ns + LATE_NS;
	if (!flow->is_wanting)
		return now_ns + ASLEEP_NS;
	if (flow->look.is_by_visits && !flow->look.is_holder)
		return now_ns + (flow->turn.is_lingering ? LATE_NS : LL_FLOW_HELD_NS);
	if (flow->look.waiting_claims && flow->look.is_by_visits)
		return now_ns + watch_ns(flow);
	if (flow->look.waiting_claims || flow->waiting)
		return now_ns + LL_FLOW_POLL_NS;
	bool is_open = atomic_load_explicit(ll_port_gate(flow->claim), memory_order_relaxed) != LL_GATE_SHUT;
	return now_ns + (is_open ? OPEN_NS : calm_ns(flow));
}

/* Twice a batch at least: what the open one has is taken to be queued. */
static uint64_t most_queued_ns(const struct ll_flow *flow)
{
	return flow->look.waiting_claims ? LL_FLOW_QUEUE_NS : 2 * calm_ns(flow);
}

/*
 * Behind a long kernel there may be one more, or the card would wait for the host after each: as far as the account can
 * pay for what runs.
 */
static bool may_queue(const struct ll_flow *flow)
{
	if (flow->look.priority == LL_PRIORITY_LOW)
		return flow->queued.ns < LL_FLOW_QUEUE_LOW_NS;
	bool may_follow = flow->queued.launches < 2 && flow->look.tokens_ns > (int64_t)flow->queued.ns;
	return flow->queued.ns < most_queued_ns(flow) || may_follow;
}

/* Work that came to an idle card has not run for longer than since then. */
static uint64_t running_ns(struct ll_flow *flow, bool is_idle, uint64_t now_ns)
{
	if (flow->is_blind) /* ll_flow_tend_blind charges */
		return 0;
	if (is_idle || flow->idle_since_ns) {
		flow->charged_ns = now_ns;
		return 0;
	}
	return ll_slices_own_ns(&flow->slices, flow->charged_ns, now_ns);
}

/* One at least, while anything is there. */
static uint32_t launches_of(const struct progress *progress)
{
	uint64_t launches = progress->queued.launches < UINT32_MAX ? progress->queued.launches : UINT32_MAX;
	return launches || progress->is_idle ? (uint32_t)launches : 1;
}

/* Nobody looks at what a program that launches ahead has launched last: by the time it is timed there is more. */
static void note_dry(struct ll_flow *flow, const struct progress *progress, uint64_t now_ns)
{
	bool is_dry = flow->pace.is_ahead ? !progress->has_work && !flow->waiting : progress->is_idle;
	if (!is_dry)
		flow->turn.dry_since_ns = 0;
	else if (!flow->turn.dry_since_ns) /* what ended last was launched so long ago, or is known to be done */
		flow->turn.dry_since_ns = now_ns - (flow->pace.is_ahead ? 0 : PATIENCE_NS);
}

uint64_t ll_flow_tick(struct ll_flow *flow, uint64_t now_ns)
{
	take_back(flow);
	struct progress progress = ll_flow_is_held_back(flow) ? progress_of_held(flow) : harvest_contexts(flow, now_ns);
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
	ll_flow_tell_pace(flow, now_ns);
	note_dry(flow, &progress, now_ns);
	flow->turn.is_lingering = progress.is_free;
	if (flow->is_wanting) /* in a damaged ledger it may be gone */
		ll_port_want(flow->claim, now_ns);
	ll_flow_look(flow, now_ns, progress.is_idle);
	ll_flow_tell_others(flow, now_ns);
	ll_flow_charge_visit(flow, now_ns);
	ll_slices_note(&flow->slices, now_ns, flow->look.sharing);
	note_debt(flow);
	if (flow->is_wanting && !is_open && shall_rest(flow, now_ns)) {
		ll_port_rest(flow->claim, now_ns);
		flow->is_wanting = false;
	}
	tend_open_gate(flow, now_ns);
	return next_tick_ns(flow, now_ns);
}

static bool may_go(const struct ll_flow *flow)
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

/* Wakes the agent, which sleeps while nothing is wanted. Said again and again: in a damaged ledger it may be gone. */
void ll_flow_want(struct ll_flow *flow, uint64_t now_ns)
{
	if (flow->is_in_debt)
		return;
	ll_port_want(flow->claim, now_ns);
	if (!flow->is_wanting)
		ll_port_wake(flow->claim);
	flow->is_wanting = true;
}

static uint64_t sleep_until_ns(const struct ll_flow *flow, uint64_t now_ns)
{
	if (!flow->is_in_debt)
		return now_ns + LL_FLOW_POLL_NS;
	uint64_t wait_ns = (uint64_t)in_hand_ns(flow) - (uint64_t)flow->look.tokens_ns; /* at a cap of 100 % */
	return now_ns + (wait_ns < CALM_NS ? wait_ns : CALM_NS);
}

static bool is_in_turn(const struct ll_flow *flow, uint64_t now_ns)
{
	uint64_t fresh_ns = flow->look.waiting_claims ? FRESH_NS : calm_ns(flow) + LATE_NS;
	return flow->is_wanting && now_ns - flow->ticked_ns < fresh_ns && may_go(flow) &&
	       ll_port_is_in_turn(flow->claim);
}

static void wait_for_turn(struct ll_flow *flow)
{
	uint64_t now_ns = ll_now_ns();
	uint64_t give_up_ns = now_ns + LL_FLOW_LONGEST_WAIT_NS;
	flow->idle_since_ns = flow->turn.paused_since_ns = 0;
	if (is_in_turn(flow, now_ns))
		return;
	flow->waiting++;
	for (;;) {
		ll_flow_want(flow, now_ns);
		uint32_t wake_count = ll_port_wake_count(flow->claim);
		ll_flow_tick(flow, now_ns);
		if (may_go(flow) || now_ns >= give_up_ns || flow->is_ending ||
		    ll_flow_passes_stalled_queue(flow, now_ns) || ll_flow_passes_awaited(flow))
			break;
		uint64_t until_ns = sleep_until_ns(flow, now_ns);
		pthread_mutex_unlock(&flow->lock.mutex);
		ll_port_sleep(flow->claim, wake_count, until_ns);
		pthread_mutex_lock(&flow->lock.mutex);
		now_ns = ll_now_ns();
		if (flow->is_in_debt) /* that ends by itself: it is not given up */
			give_up_ns = now_ns + LL_FLOW_LONGEST_WAIT_NS;
	}
	flow->waiting--;
}

/* This launch, and some like it that may follow where it is like the one before. */
static bool count_ahead(struct ll_flow *flow, const struct ll_advance_kind *what, uint64_t now_ns)
{
	struct ll_flow_context *known = ll_flow_find_context(flow, what->context);
	bool is_by_visits = flow->look.is_by_visits;
	if (is_by_visits && !ll_flow_may_pass_unheld(flow, known, what->stream))
		return false;
	bool is_like_last = ll_advance_is_like_last(&flow->advance, what);
	uint32_t most = is_like_last && !is_by_visits ? 1 + LL_ADVANCE_MOST : 1;
	struct ll_timing_queue counted = {0};
	if (known)
		counted = ll_timing_count(known->timing, what->stream, what->kind, now_ns, most);
	if (!counted.launches)
		return false;
	if (counted.launches > 1)
		ll_advance_give(&flow->advance, what, (uint32_t)counted.launches - 1);
	flow->idle_since_ns = 0;
	flow->queued.ns += counted.ns;
	flow->queued.launches += counted.launches;
	return true;
}

/* Half of a launch must not be lost to a thread that is cancelled: the driver's calls may be cancellation points. */
bool ll_flow_count(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream, uint64_t kind)
{
	if (atomic_load(&flow->is_ending) || !context)
		return false;
	struct ll_advance_kind what = {context, stream, kind};
	if (ll_advance_use(&flow->advance, &what)) {
		ll_flow_note_launches(flow, 1);
		return true;
	}
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	uint64_t now_ns = ll_now_ns();
	bool is_shut = atomic_load(ll_port_gate(flow->claim)) == LL_GATE_SHUT;
	bool may_count = flow->look.is_by_visits ? flow->is_wanting : is_in_turn(flow, now_ns);
	bool is_counted = may_count && is_shut && count_ahead(flow, &what, now_ns);
	ll_flow_note_launches(flow, is_counted);
	pthread_mutex_unlock(&flow->lock.mutex);
	return is_counted;
}

/* A gate that nobody looks after would stay open. */
static void look_for_the_deaf(struct ll_flow *flow)
{
	uint64_t now_ns = ll_now_ns();
	if (now_ns >= flow->ticked_ns + DEAF_NS)
		ll_flow_tick(flow, now_ns);
}

void ll_flow_enter(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream, uint64_t kind)
{
	if (atomic_load(&flow->is_ending)) /* the agent may hang with the lock */
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	uint32_t gate = atomic_load(ll_port_gate(flow->claim));
	struct ll_flow_context *known = ll_flow_get_context(flow, context);
	ll_flow_use(known);
	if (gate == LL_GATE_SHUT && !ll_flow_waits_on_card(flow, known, stream))
		wait_for_turn(flow);
	else if (gate == LL_GATE_TIMED) /* lost against whoever shuts it meanwhile */
		atomic_compare_exchange_strong(ll_port_gate(flow->claim), &gate, LL_GATE_OPEN);
	look_for_the_deaf(flow);
	flow->launching++;
	ll_flow_note_launches(flow, 1);
	ll_flow_note_untimed(flow);
	flow->last_context = context;
	flow->last_stream = stream;
	if (known && gate == LL_GATE_OPEN && flow->look.is_sliced)
		ll_timing_note_typical(known->timing, stream, kind);
	if (known && !known->is_gone)
		ll_timing_begin(known->timing, stream, kind);
	ll_flow_leave_unused(known);
	pthread_mutex_unlock(&flow->lock.mutex);
}

static void note_queue(struct ll_flow *flow, const struct ll_timing *timing)
{
	flow->is_blind |= ll_timing_is_blind(timing);
	flow->queued = ll_timing_queued(timing);
	ll_flow_set_open_limit(flow, timing);
}

void ll_flow_leave(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream, uint64_t kind,
		   uint64_t launched_ns)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	struct ll_flow_context *known = ll_flow_get_context(flow, context);
	ll_flow_use(known);
	if (known)
		ll_timing_end(known->timing, stream, kind, launched_ns);
	if (known && !known->is_gone)
		note_queue(flow, known->timing);
	ll_flow_leave_unused(known);
	flow->launching--;
	pthread_mutex_unlock(&flow->lock.mutex);
}
