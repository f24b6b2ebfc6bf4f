/* Makes launches wait for their turn on the card, until the tenant's gate on the card is open. The program's threads do
 * not wait. */
#include "base/clock.h"
#include "shim/link/port.h"
#include "shim/time/flow_state.h"

/* Work that may be launched between two waits of a stream. When the gate shuts, the unfinished part of this work runs
 * beside the next tenant's work. */
#define PASSED_GATE_NS (300 * LL_NS_PER_US)
/* The bound on queued work, both held and running. A stream has room for about a thousand operations (doc/facts.md). */
#define QUEUE_NS (20 * LL_NS_PER_MS)
enum { QUEUE_LAUNCHES = 512 };

static uint32_t word_of(const struct ll_flow *flow)
{
	const _Atomic uint32_t *word = ll_port_card_word(flow->claim);
	return word ? atomic_load_explicit(word, memory_order_relaxed) : LL_VISIT_WORD_OPEN;
}

/* Returns whether launches may wait on the card. They may not if the tenant works on several cards, because it needs
 * its turns on all of them at the same time. They may not if kernels have a time limit, because a waiting kernel would
 * appear to run. They may not if timing events fail, because then the length of the queue is not known. */
static bool can_hold(const struct ll_flow *flow)
{
	return !flow->has_first && !flow->gang.yields_to_gang && !flow->look.awaited.seen_ns && !flow->max_kernel_ns &&
	       !flow->is_blind && !flow->is_lost && !flow->is_in_debt;
}

static bool prepare_gate(struct ll_flow *flow, struct ll_flow_context *context)
{
	bool holds = context && can_hold(flow) && ll_card_gate_prepare(&context->gate, ll_port_card_word(flow->claim));
	ll_port_set_waits_on_card(flow->claim, holds);
	return holds;
}

/* Returns how much work a program with a cap may queue. A visit runs all queued work and charges it to the cap's
 * account. If the work is more than the account holds, the program stops until its debt is paid. */
static uint64_t most_a_cap_pays_ns(const struct ll_flow *flow)
{
	int64_t tokens_ns = flow->look.tokens_ns;
	return tokens_ns > (int64_t)LL_FLOW_QUEUE_NS ? (uint64_t)tokens_ns : LL_FLOW_QUEUE_NS;
}

static bool has_room(const struct ll_flow *flow)
{
	bool is_capped = flow->look.tokens_most_ns != INT64_MAX;
	if (is_capped && flow->queued.ns >= most_a_cap_pays_ns(flow))
		return false;
	bool is_short = flow->queued.ns < QUEUE_NS && flow->queued.launches < QUEUE_LAUNCHES;
	return is_short ||
	       flow->queued.launches <
		   2; /* a second launch may be queued behind a long one, so the card does not wait for the host */
}

static bool wants_wait(const struct ll_flow *flow, const struct ll_flow_context *context,
		       struct ll_timing_stream stream)
{
	struct ll_timing_wait last = ll_timing_last_wait(context->timing, stream);
	uint32_t word = word_of(flow);
	bool is_shut_anew = !(word & LL_VISIT_WORD_OPEN) && last.word != word;
	return is_shut_anew || last.unheld_ns >= PASSED_GATE_NS;
}

bool ll_flow_may_pass_unheld(const struct ll_flow *flow, const struct ll_flow_context *context,
			     struct ll_timing_stream stream)
{
	return context && context->gate.state == LL_CARD_GATE_READY && has_room(flow) &&
	       !wants_wait(flow, context, stream);
}

static bool hold_stream(struct ll_flow *flow, struct ll_flow_context *context, struct ll_timing_stream stream)
{
	if (!wants_wait(flow, context, stream))
		return true;
	if (!ll_timing_last_wait(context->timing, stream).word) {
		ll_flow_note_untimed(flow);
		ll_timing_end_unheld(context->timing, stream);
	}
	if (ll_flow_is_card_gate_shut(
		flow)) /* if this program has priority over the visiting one, the tick takes the card at once */
		ll_flow_tick(flow, ll_now_ns());
	uint32_t word = word_of(flow);
	flow->launching++; /* so that the claim does not rest while the lock is released */
	ll_timing_lock_let_go(&flow->lock);
	bool waits = ll_card_gate_wait(&context->gate, stream.handle);
	ll_timing_lock_take_back(&flow->lock);
	flow->launching--;
	if (!waits)
		context->gate.state = LL_CARD_GATE_NONE;
	else
		ll_timing_note_wait(context->timing, stream, word);
	return waits;
}

/* Waits until the queue has room. The thread does not wait for the turn, because the launch waits on the card. */
static void wait_for_room(struct ll_flow *flow)
{
	uint64_t give_up_ns = ll_now_ns() + LL_FLOW_LONGEST_WAIT_NS, now_ns;
	flow->waiting++;
	while (flow->look.is_exclusive && !has_room(flow) && !flow->is_ending && (now_ns = ll_now_ns()) < give_up_ns) {
		uint32_t wake_count = ll_port_wake_count(flow->claim);
		ll_flow_tick(flow, now_ns);
		if (has_room(flow) || (!ll_flow_is_card_gate_shut(flow) && ll_flow_passes_stalled_queue(flow, now_ns)))
			break;
		uint64_t until_ns = now_ns + (ll_flow_is_card_gate_shut(flow) ? LL_FLOW_HELD_NS : LL_FLOW_POLL_NS);
		pthread_mutex_unlock(&flow->lock.mutex);
		ll_port_sleep(flow->claim, wake_count, until_ns);
		pthread_mutex_lock(&flow->lock.mutex);
	}
	flow->waiting--;
}

bool ll_flow_waits_on_card(struct ll_flow *flow, struct ll_flow_context *known, struct ll_timing_stream stream)
{
	if (!prepare_gate(flow, known))
		return false;
	ll_flow_note_launching(flow);
	flow->turn.paused_since_ns = 0;
	uint64_t now_ns = ll_now_ns();
	if (!flow->is_wanting) {
		ll_flow_want(flow, now_ns);
		ll_flow_tick(flow, now_ns);
	}
	if (!flow->look.is_exclusive)
		return false;
	wait_for_room(flow);
	return flow->look.is_exclusive && hold_stream(flow, known, stream);
}

void ll_flow_leave_gates(struct ll_flow *flow)
{
	for (struct ll_flow_context *context = flow->contexts; context; context = context->next)
		ll_card_gate_leave(&context->gate);
}
