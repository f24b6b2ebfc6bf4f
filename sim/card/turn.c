#include "card/turn.h"

#include "base/clock.h"
#include "card/kernel.h"
#include "card/queue.h"
#include "card/trace.h"

#define LEAST_SLICE_NS (1 * LL_NS_PER_US)
/* Between the records of two stays (doc/facts.md). */
#define BETWEEN_STAYS_NS (84 * LL_NS_PER_US)

/* Whether the tenant has a kernel that runs, waits for its turn, or follows directly after the last one. */
static bool wants_card(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint32_t stream;
	SIM_EACH_STREAM(w, card, tenant, stream)
	{
		if (!sim_queue_is_pending(&w->streams[stream]) || sim_queue_is_off(w, stream) ||
		    sim_queue_head(w, stream)->kind != SIM_OP_KERNEL)
			continue;
		if (sim_queue_head(w, stream)->state != SIM_OP_QUEUED ||
		    sim_queue_ready_ns(w, card, stream, false) <= w->now_ns)
			return true;
	}
	return false;
}

/* Returns the next tenant after `after` that wants the card, in their order on it; SIM_NONE: no other tenant wants
 * it. */
static uint32_t next_tenant(struct sim_world *w, const struct sim_card *card, uint32_t after)
{
	uint32_t start = 0;
	while (start < card->context_count && w->contexts[card->contexts[start]].tenant != after)
		start++;
	if (start == card->context_count)
		start--; /* no tenant had the card before, so the first one is next */
	for (uint32_t i = 1; i <= card->context_count; i++) {
		uint32_t tenant = w->contexts[card->contexts[(start + i) % card->context_count]].tenant;
		if (tenant != after && wants_card(w, card, tenant))
			return tenant;
	}
	return SIM_NONE;
}

static void pause_tenant(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint32_t stream;
	SIM_EACH_STREAM(w, card, tenant, stream)
	{
		if (sim_queue_has_kernel(w, stream))
			sim_kernel_pause(w, sim_queue_head(w, stream));
	}
}

/* Returns the part of the card that the tenant's begun kernels fill, whose state is saved and restored. */
static double begun_part(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint64_t threads = 0;
	uint32_t stream;
	SIM_EACH_STREAM(w, card, tenant, stream)
	{
		uint32_t sms = w->contexts[w->streams[stream].context].sm_limit;
		if (sim_queue_has_kernel(w, stream))
			threads += sim_kernel_threads(sms, sim_queue_head(w, stream));
	}
	return (double)threads / (double)((uint64_t)card->sm_count * SIM_SM_THREADS);
}

static uint64_t state_ns(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	double part = tenant == SIM_NONE ? 0 : begun_part(w, card, tenant);
	return (uint64_t)((double)card->save_ns * (part < 1 ? part : 1));
}

static uint64_t slice_ns(const struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint64_t own_ns = tenant < SIM_CONTEXTS ? w->contexts[tenant].slice_ns : 0;
	return own_ns ? own_ns : card->slice_ns;
}

static void begin_stay(struct sim_world *w, struct sim_card *card, uint32_t tenant, uint64_t at_ns)
{
	uint64_t end_ns = at_ns - BETWEEN_STAYS_NS;
	if (card->turn.stay == tenant)
		return;
	sim_trace_note(w, card, card->turn.stay, LL_RM_SWITCH_END, end_ns > w->now_ns ? end_ns : w->now_ns);
	sim_trace_note(w, card, tenant, LL_RM_SWITCH_START, at_ns);
	SIM_EDIT(w, &card->turn)->stay = tenant;
}

static void give_turn(struct sim_world *w, struct sim_card *card, uint32_t tenant)
{
	struct sim_turn *turn = SIM_EDIT(w, &card->turn);
	uint64_t save_ns = state_ns(w, card, turn->tenant);
	if (turn->tenant != SIM_NONE)
		pause_tenant(w, card, turn->tenant);
	turn->tenant = tenant;
	turn->is_ending = false;
	if (tenant == SIM_NONE)
		return;
	turn->switch_until_ns = w->now_ns;
	turn->slice_end_ns = w->now_ns + slice_ns(w, card, tenant);
	if (turn->resident != tenant && turn->resident != SIM_NONE) {
		turn->slice_end_ns += card->switch_ns + save_ns;
		turn->switch_until_ns += card->switch_ns + save_ns;
	}
	begin_stay(w, card, tenant, turn->switch_until_ns);
	if (turn->resident != tenant && turn->resident != SIM_NONE)
		turn->switch_until_ns += state_ns(w, card, tenant);
	turn->resident = tenant;
}

static bool has_running(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint32_t stream;
	SIM_EACH_STREAM(w, card, tenant, stream)
	{
		if (sim_queue_has_kernel(w, stream))
			return true;
	}
	return false;
}

/* Whether the tenant has a kernel queued behind those that run. */
static bool has_queued(struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	uint32_t stream;
	SIM_EACH_STREAM(w, card, tenant, stream)
	{
		if (sim_queue_is_off(w, stream))
			continue;
		uint64_t position = w->streams[stream].done + sim_queue_has_kernel(w, stream);
		uint64_t submitted = w->streams[stream].submitted;
		while (position < submitted && sim_op_at(w, stream, position)->kind == SIM_OP_MARK)
			position++;
		const struct sim_op *op = position < submitted ? sim_op_at(w, stream, position) : NULL;
		if (op && op->kind == SIM_OP_KERNEL && op->submit_ns + card->launch_ns <= w->now_ns)
			return true;
	}
	return false;
}

/*
 * If nothing is queued behind the running work, and another tenant wants the card, the turn ends with the running work.
 * Kernels that the host launches meanwhile run in the tenant's next turn (doc/facts.md).
 */
static bool settle_end(struct sim_world *w, struct sim_card *card)
{
	const struct sim_turn *turn = &card->turn;
	if (turn->is_ending || has_queued(w, card, turn->tenant) || next_tenant(w, card, turn->tenant) == SIM_NONE)
		return false;
	SIM_EDIT(w, &card->turn)->is_ending = true;
	return true;
}

/* A slice that ended while nobody else wanted the card was followed by others. */
static void follow_slices(struct sim_world *w, struct sim_card *card)
{
	const struct sim_turn *turn = &card->turn;
	if (turn->tenant == SIM_NONE || turn->slice_end_ns >= w->now_ns)
		return;
	uint64_t length_ns = slice_ns(w, card, turn->tenant);
	uint64_t slices = (w->now_ns - turn->slice_end_ns + length_ns - 1) / length_ns;
	SIM_EDIT(w, &card->turn)->slice_end_ns += slices * length_ns;
}

bool sim_turn_settle(struct sim_world *w, struct sim_card *card)
{
	const struct sim_turn *turn = &card->turn;
	if (w->now_ns < w->suspended_until_ns) {
		if (turn->tenant == SIM_NONE)
			return false;
		give_turn(w, card, SIM_NONE);
		return true;
	}
	if (w->now_ns < turn->switch_until_ns)
		return false;
	if (w->now_ns > turn->switch_until_ns)
		follow_slices(w, card);
	bool wants = turn->tenant != SIM_NONE && wants_card(w, card, turn->tenant);
	bool is_over = turn->is_ending && !has_running(w, card, turn->tenant);
	if (wants && !is_over && w->now_ns < turn->slice_end_ns)
		return settle_end(w, card);
	uint32_t last = turn->tenant != SIM_NONE ? turn->tenant : turn->resident;
	uint32_t next = next_tenant(w, card, last);
	if (next == SIM_NONE && wants) {
		struct sim_turn *longer = SIM_EDIT(w, &card->turn);
		longer->slice_end_ns = w->now_ns + slice_ns(w, card, turn->tenant);
		longer->is_ending = false;
		return is_over;
	}
	if (next == SIM_NONE && last != SIM_NONE && turn->tenant == SIM_NONE && wants_card(w, card, last))
		next = last;
	if (next == turn->tenant)
		return false;
	give_turn(w, card, next);
	return true;
}

uint64_t sim_turn_next_ns(struct sim_world *w, const struct sim_card *card)
{
	const struct sim_turn *turn = &card->turn;
	if (w->now_ns < turn->switch_until_ns)
		return turn->switch_until_ns;
	bool has_end = turn->slice_end_ns > w->now_ns && next_tenant(w, card, turn->tenant) != SIM_NONE;
	return has_end ? turn->slice_end_ns : SIM_NEVER;
}

/* ---- what programs ask for ---- */

/* The turn of a context, or NULL: another tenant has the card. */
static struct sim_turn *own_turn(struct sim_world *w, uint32_t context)
{
	struct sim_card *card = &w->cards[w->contexts[context].card];
	return card->turn.tenant == context ? &card->turn : NULL;
}

void sim_turn_set_slice(struct sim_world *w, uint32_t context, uint64_t slice_ns)
{
	struct sim_turn *turn = own_turn(w, context);
	uint64_t length_ns = slice_ns > LEAST_SLICE_NS ? slice_ns : LEAST_SLICE_NS;
	*SIM_EDIT(w, &w->contexts[context].slice_ns) = length_ns;
	if (turn)
		SIM_EDIT(w, turn)->slice_end_ns =
		    (w->now_ns > turn->switch_until_ns ? w->now_ns : turn->switch_until_ns) + length_ns;
}

void sim_turn_yield(struct sim_world *w, uint32_t context)
{
	struct sim_turn *turn = own_turn(w, context);
	if (turn)
		SIM_EDIT(w, turn)->slice_end_ns = w->now_ns;
}

void sim_turn_end_stay(struct sim_world *w, struct sim_card *card)
{
	struct sim_turn *turn = SIM_EDIT(w, &card->turn);
	sim_trace_note(w, card, turn->stay, LL_RM_SWITCH_END,
		       w->now_ns > turn->switch_until_ns ? w->now_ns : turn->switch_until_ns);
	turn->stay = SIM_NONE;
}

static bool is_all_off(struct sim_world *w, const struct sim_context *context)
{
	for (uint32_t i = 0; i < context->stream_count; i++) {
		if (!sim_queue_is_off(w, context->streams[i]))
			return false;
	}
	return true;
}

void sim_turn_put_off(struct sim_world *w, uint32_t context, uint32_t channels)
{
	struct sim_context *at = &w->contexts[context];
	for (uint32_t i = 0; i < at->stream_count; i++) {
		uint32_t stream = at->streams[i];
		bool is_on_card = sim_queue_has_kernel(w, stream) && !sim_queue_head(w, stream)->paused_ns;
		if (is_on_card && channels & sim_queue_channel(&w->streams[stream]))
			sim_kernel_pause(w, sim_queue_head(w, stream));
	}
	*SIM_EDIT(w, &at->off_channels) = channels;
	if (w->cards[at->card].turn.stay == context && is_all_off(w, at))
		sim_turn_end_stay(w, &w->cards[at->card]);
}
