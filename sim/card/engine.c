#include "card/engine.h"

#include "base/clock.h"
#include "card/command.h"
#include "card/dispatch.h"
#include "card/fault.h"
#include "card/kernel.h"
#include "card/meter.h"
#include "card/process.h"
#include "card/queue.h"
#include "card/trace.h"
#include "card/turn.h"

static uint64_t later_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void settle_card(struct sim_world *w, uint32_t card_index)
{
	struct sim_card *card = &w->cards[card_index];
	bool changed;
	do {
		changed = sim_dispatch_settle(w, card_index);
		uint32_t stream;
		SIM_EACH_STREAM(w, card, SIM_NONE, stream)
		changed |= sim_queue_settle(w, card, stream);
		changed |= sim_turn_settle(w, card);
		sim_commit(w);
	} while (changed);
}

static uint64_t next_card_event_ns(struct sim_world *w, uint32_t card_index)
{
	const struct sim_card *card = &w->cards[card_index];
	const struct sim_turn *turn = &card->turn;
	uint64_t next_ns = SIM_NEVER;
	bool is_on = turn->tenant != SIM_NONE && w->now_ns >= turn->switch_until_ns;
	if (turn->tenant != SIM_NONE)
		next_ns = sim_turn_next_ns(w, card);
	if (is_on)
		next_ns = earlier_ns(next_ns, sim_dispatch_next_ns(w, card_index));
	uint32_t stream;
	SIM_EACH_STREAM(w, card, SIM_NONE, stream)
	{
		if (!sim_queue_is_pending(&w->streams[stream]))
			continue;
		const struct sim_op *op = sim_queue_head(w, stream);
		bool has_turn = is_on && w->contexts[w->streams[stream].context].tenant == turn->tenant;
		uint64_t at_ns = SIM_NEVER;
		if (op->state == SIM_OP_QUEUED) {
			at_ns = sim_queue_ready_ns(w, card, stream, true);
			if (op->kind == SIM_OP_COPY && at_ns <= w->now_ns)
				at_ns = card->turn.copy_free_ns[op->direction];
		} else if (op->state == SIM_OP_RUNNING &&
			   (op->kind == SIM_OP_COPY || (sim_queue_has_kernel(w, stream) && has_turn))) {
			at_ns = op->end_ns;
		}
		if (at_ns > w->now_ns)
			next_ns = earlier_ns(next_ns, at_ns);
	}
	return next_ns;
}

uint64_t sim_next_event_ns(struct sim_world *w)
{
	uint64_t next_ns = SIM_NEVER;
	for (uint32_t i = 0; i < w->slot_count; i++)
		next_ns = earlier_ns(next_ns, next_card_event_ns(w, i));
	if (w->first_event_ns)
		next_ns = earlier_ns(next_ns, w->first_event_ns);
	if (w->suspended_until_ns > w->now_ns)
		next_ns = earlier_ns(next_ns, w->suspended_until_ns);
	return next_ns;
}

static uint64_t first_event_ns(const struct sim_world *w)
{
	uint64_t first_ns = SIM_NEVER;
	for (unsigned i = 0; i < SIM_EVENTS; i++) {
		if (w->events[i].at_ns)
			first_ns = earlier_ns(first_ns, w->events[i].at_ns);
	}
	return first_ns == SIM_NEVER ? 0 : first_ns;
}

/* A command may store further commands. */
static void run_due_events(struct sim_world *w)
{
	if (!w->first_event_ns || w->first_event_ns > w->now_ns)
		return;
	for (unsigned i = 0; i < SIM_EVENTS; i++) {
		struct sim_event *event = &w->events[i];
		if (!event->at_ns || event->at_ns > w->now_ns)
			continue;
		SIM_EDIT(w, event)->at_ns = 0;
		/* The command was checked when it was stored. If it cannot run now, it is ignored. */
		sim_command_run(w, event->text, SIM_COMMAND_LIVE, NULL);
		sim_commit(w);
	}
	*SIM_EDIT(w, &w->first_event_ns) = first_event_ns(w);
	sim_commit(w);
}

static void settle_cards(struct sim_world *w)
{
	run_due_events(w);
	for (uint32_t i = 0; i < w->slot_count; i++)
		settle_card(w, i);
	/* A wait for a stream of another card may have ended there. */
	for (uint32_t i = 0; i + 1 < w->slot_count; i++)
		settle_card(w, i);
}

/* Counts the time in which contexts had the card with kernels running. The time of a switch counts for the next
 * tenant. */
static void charge_turn(struct sim_world *w, struct sim_card *card, uint64_t length_ns)
{
	bool is_switching = w->now_ns < card->turn.switch_until_ns;
	for (uint32_t c = 0; c < card->context_count && card->turn.tenant != SIM_NONE; c++) {
		struct sim_context *context = &w->contexts[card->contexts[c]];
		bool runs = is_switching;
		for (uint32_t i = 0; i < context->stream_count && context->tenant == card->turn.tenant; i++)
			runs |= sim_queue_has_kernel(w, context->streams[i]);
		if (!runs || context->tenant != card->turn.tenant)
			continue;
		*SIM_EDIT(w, &context->card_ns) += length_ns;
		*SIM_EDIT(w, &card->meter.context_s) += (double)length_ns * 1e-9;
		if (!is_switching)
			*SIM_EDIT(w, &card->meter.kernel_s) += (double)length_ns * 1e-9;
	}
}

/* Simulates one step: up to the next event, or to limit_ns. */
static void step_world(struct sim_world *w, uint64_t limit_ns)
{
	uint64_t to_ns = earlier_ns(limit_ns, sim_next_event_ns(w));
	for (uint32_t i = 0; i < w->slot_count; i++)
		to_ns = earlier_ns(to_ns, sim_meter_edge_ns(&w->cards[i]));
	to_ns = later_ns(to_ns, w->now_ns);
	uint64_t length_ns = to_ns - w->now_ns;
	for (uint32_t i = 0; i < w->slot_count; i++) {
		struct sim_load load = sim_dispatch_load(w, i);
		sim_meter_add(w, i, length_ns, &load);
		if (load.is_busy)
			charge_turn(w, &w->cards[i], length_ns);
	}
	*SIM_EDIT(w, &w->now_ns) = to_ns;
	for (uint32_t i = 0; i < w->slot_count; i++) {
		if (sim_meter_edge_ns(&w->cards[i]) <= to_ns)
			sim_meter_close(w, i);
	}
	sim_commit(w);
}

/* If nothing ran for minutes and no process looked, the windows of that time are skipped. */
static void skip_idle_time(struct sim_world *w, uint64_t now_ns)
{
	const uint64_t keep_ns = 30 * LL_NS_PER_S;
	if (now_ns < w->now_ns + 2 * keep_ns || sim_next_event_ns(w) != SIM_NEVER)
		return;
	uint64_t skip_ns = (now_ns - w->now_ns - keep_ns) / (200 * LL_NS_PER_MS) * (200 * LL_NS_PER_MS);
	for (uint32_t i = 0; i < w->slot_count; i++)
		sim_meter_skip(w, i, skip_ns);
	*SIM_EDIT(w, &w->now_ns) += skip_ns;
	sim_commit(w);
}

void sim_advance(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns)
{
	sim_procs_reap(w, now_ns);
	*SIM_EDIT(w, &w->wall_offset_ns) = wall_offset_ns;
	sim_commit(w);
	settle_cards(w);
	skip_idle_time(w, now_ns);
	while (w->now_ns < now_ns) {
		step_world(w, now_ns);
		settle_cards(w);
		sim_traces_deliver_due(w);
	}
}

void sim_advance_to_now(struct sim_world *w)
{
	/* Only a jump of the wall clock is applied. Smaller differences come from reading the two clocks one after the
	 * other. */
	const uint64_t jump_ns = 2 * LL_NS_PER_MS;
	uint64_t offset_ns = sim_wall_offset_ns(), before_ns = w->wall_offset_ns;
	uint64_t change_ns = offset_ns > before_ns ? offset_ns - before_ns : before_ns - offset_ns;
	sim_advance(w, ll_now_ns(), change_ns > jump_ns ? offset_ns : before_ns);
}

uint64_t sim_wall_offset_ns(void)
{
	uint64_t best_ns = UINT64_MAX, offset_ns = 0;
	for (int i = 0; i < 3 && best_ns > 2 * LL_NS_PER_US; i++) {
		uint64_t begun_ns = ll_now_ns(), wall_ns = ll_wall_ns(), took_ns = ll_now_ns() - begun_ns;
		if (took_ns < best_ns) {
			best_ns = took_ns;
			offset_ns = wall_ns - begun_ns - took_ns / 2;
		}
	}
	return offset_ns;
}

uint32_t sim_fault_check(struct sim_world *w, const char *function)
{
	if (!__atomic_load_n(&w->has_faults, __ATOMIC_RELAXED))
		return 0;
	uint64_t until_ns;
	sim_lock(w);
	sim_advance_to_now(w);
	uint32_t status = sim_fault_find(w, function, &until_ns);
	sim_unlock(w);
	ll_sleep_until_ns(until_ns);
	return status;
}
