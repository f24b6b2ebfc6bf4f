#include "card/context.h"

#include <errno.h>

#include "abi/nvml.h"
#include "card/defaults.h"
#include "card/memory.h"
#include "card/mps_limits.h"
#include "card/turn.h"

/* Whether the card has contexts of other processes. An MPS server and its clients count as one process. */
static bool has_strangers(struct sim_world *w, uint32_t card, uint32_t proc)
{
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (sim_context_is_on_card(w, context, card) &&
		    sim_mps_owner(w, context->proc) != sim_mps_owner(w, proc))
			return true;
	}
	return false;
}

static bool mode_refuses(struct sim_world *w, uint32_t card, uint32_t proc)
{
	uint32_t physical = w->cards[card].parent == SIM_NONE ? card : w->cards[card].parent;
	switch (w->cards[physical].compute_mode) {
	case LL_NVML_COMPUTEMODE_PROHIBITED:
		return true;
	case LL_NVML_COMPUTEMODE_EXCLUSIVE_THREAD:
	case LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
		return has_strangers(w, card, proc);
	default:
		return false;
	}
}

uint64_t sim_context_own_bytes(struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes)
{
	uint64_t bytes;
	if (!sim_mps_context_bytes(w, context, stack_bytes, &bytes))
		bytes = sim_context_bytes(&w->cards[context->card], stack_bytes) - context->saved_bytes;
	return bytes;
}

int sim_context_new(struct sim_world *w, uint32_t card, uint32_t proc, uint32_t connections, uint32_t *ret_context)
{
	if (mode_refuses(w, card, proc))
		return -EBUSY;
	uint32_t index = 0;
	while (index < SIM_CONTEXTS && w->contexts[index].is_used)
		index++;
	if (index == SIM_CONTEXTS || w->cards[card].context_count == SIM_CARD_CONTEXTS)
		return -ENOSPC;
	struct sim_context *context = SIM_EDIT(w, &w->contexts[index]);
	*context = (struct sim_context){
	    .is_used = 1,
	    .generation = context->generation + 1,
	    .card = card,
	    .proc = proc,
	    .tenant = index,
	    .sm_limit = w->cards[card].sm_count,
	    .stack_bytes = SIM_DEFAULT_STACK_BYTES,
	    .saved_bytes = connections == 1 ? SIM_LEAN_BYTES : 0,
	};
	sim_mps_context_init(w, context);
	uint64_t own_bytes = sim_context_own_bytes(w, context, SIM_DEFAULT_STACK_BYTES);
	if (!sim_proc_has_room(w, card, proc, own_bytes)) {
		context->is_used = 0;
		return -ENOMEM;
	}
	context->own_bytes = own_bytes;
	uint32_t legacy;
	int rc = sim_stream_new(w, index, 0, false, &legacy);
	if (rc < 0) {
		context->is_used = 0;
		return rc;
	}
	w->streams[legacy].is_legacy = 1;
	w->streams[legacy].queue = SIM_NONE; /* it has its own queue */
	context->connections = connections;
	struct sim_card *on = SIM_EDIT(w, &w->cards[card]);
	on->contexts[on->context_count++] = (uint16_t)index;
	*ret_context = index;
	return 0;
}

static void drop_queue(struct sim_world *w, struct sim_stream *stream, uint32_t index)
{
	for (uint64_t position = stream->done; position < stream->submitted; position++) {
		struct sim_op *op = sim_op_at(w, index, position);
		sim_save(w, &op->state, sizeof op->state);
		sim_save(w, &op->end_ns, 2 * sizeof op->end_ns);
		op->state = SIM_OP_DROPPED;
		op->end_ns = w->now_ns;
		op->done_sequence = w->next_done_sequence;
		(*SIM_EDIT(w, &w->next_done_sequence))++;
	}
	SIM_EDIT(w, stream)->done = stream->submitted;
}

static bool has_tenant(const struct sim_world *w, const struct sim_card *card, uint32_t tenant)
{
	for (uint32_t i = 0; i < card->context_count; i++) {
		if (w->contexts[card->contexts[i]].tenant == tenant)
			return true;
	}
	return false;
}

void sim_context_free(struct sim_world *w, uint32_t index)
{
	struct sim_context *context = SIM_EDIT(w, &w->contexts[index]);
	for (uint32_t i = 0; i < context->stream_count; i++)
		SIM_EDIT(w, &w->streams[context->streams[i]])->is_used = 0;
	context->is_used = 0;
	struct sim_card *card = SIM_EDIT(w, &w->cards[context->card]);
	for (uint32_t i = 0; i < card->context_count; i++) {
		if (card->contexts[i] == index)
			card->contexts[i--] = card->contexts[--card->context_count];
	}
	/* The state of an MPS server stays on the card for its other clients. */
	bool is_last = !has_tenant(w, card, context->tenant);
	if (is_last && card->turn.stay == context->tenant)
		sim_turn_end_stay(w, card);
	if (is_last && card->turn.tenant == context->tenant)
		card->turn.tenant = SIM_NONE;
	if (is_last && card->turn.resident == context->tenant)
		card->turn.resident = SIM_NONE;
	sim_commit(w);
}

void sim_context_lose(struct sim_world *w, uint32_t index, uint32_t error)
{
	struct sim_context *context = SIM_EDIT(w, &w->contexts[index]);
	for (uint32_t i = 0; i < context->stream_count; i++) {
		drop_queue(w, &w->streams[context->streams[i]], context->streams[i]);
		/* The world is consistent after each stream, and the undo log has a limited size. */
		sim_commit(w);
	}
	SIM_EDIT(w, context)->error = error;
	struct sim_turn *turn = SIM_EDIT(w, &w->cards[context->card].turn);
	if (turn->tenant == index)
		turn->tenant = SIM_NONE;
	sim_commit(w);
}

int sim_stream_new(struct sim_world *w, uint32_t context_index, int32_t priority, bool is_blocking,
		   uint32_t *ret_stream)
{
	struct sim_context *context = &w->contexts[context_index];
	uint32_t index = 0;
	while (index < SIM_STREAMS && w->streams[index].is_used)
		index++;
	if (index == SIM_STREAMS || context->stream_count == SIM_CONTEXT_STREAMS)
		return -ENOSPC;
	struct sim_stream *stream = SIM_EDIT(w, &w->streams[index]);
	*stream = (struct sim_stream){
	    .is_used = 1,
	    .generation = stream->generation + 1,
	    .context = context_index,
	    .priority = priority,
	    .is_blocking = is_blocking,
	};
	SIM_EDIT(w, context)->streams[context->stream_count] = (uint16_t)index;
	context->stream_count++;
	if (context->connections) {
		stream->queue = context->next_queue % context->connections;
		context->has_shared_queues |= context->next_queue >= context->connections;
		context->next_queue++;
	}
	*ret_stream = index;
	return 0;
}

void sim_stream_collect(struct sim_world *w, uint32_t index)
{
	struct sim_stream *stream = &w->streams[index];
	if (!stream->is_closing || stream->reaped != stream->submitted)
		return;
	struct sim_context *context = SIM_EDIT(w, &w->contexts[stream->context]);
	for (uint32_t i = 0; i < context->stream_count; i++) {
		if (context->streams[i] == index)
			context->streams[i] = context->streams[--context->stream_count];
	}
	SIM_EDIT(w, stream)->is_used = 0;
}

void sim_stream_close(struct sim_world *w, uint32_t index)
{
	SIM_EDIT(w, &w->streams[index])->is_closing = 1;
	sim_stream_collect(w, index);
}

unsigned sim_context_count(struct sim_world *w, uint32_t card, uint32_t proc)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (sim_context_is_on_card(w, context, card) && (proc == SIM_NONE || context->proc == proc))
			count++;
	}
	return count;
}
