#include "card/queue.h"

#include <errno.h>

static uint64_t later_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool sim_walk_next(struct sim_world *w, struct sim_walk *walk, uint32_t *ret_stream)
{
	for (; walk->context < walk->card->context_count; walk->context++, walk->stream = 0) {
		const struct sim_context *context = &w->contexts[walk->card->contexts[walk->context]];
		if (walk->tenant != SIM_NONE && context->tenant != walk->tenant)
			continue;
		if (walk->stream < context->stream_count) {
			*ret_stream = context->streams[walk->stream++];
			return true;
		}
	}
	return false;
}

uint64_t sim_done_ns(struct sim_world *w, uint32_t index, uint32_t generation, uint64_t position)
{
	const struct sim_stream *stream = &w->streams[index];
	if (!stream->is_used || stream->generation != generation || position + SIM_RING < stream->submitted)
		return 0;
	return position < stream->done ? sim_op_at(w, index, position)->end_ns : SIM_NEVER;
}

/* Returns the first operation of a stream that has not begun: its head, or the one behind a head that has begun. NULL:
 * there is none. */
static const struct sim_op *first_waiting(struct sim_world *w, uint32_t index)
{
	const struct sim_stream *stream = &w->streams[index];
	uint64_t position = stream->done;
	if (position < stream->submitted && sim_op_at(w, index, position)->state != SIM_OP_QUEUED)
		position++;
	return position < stream->submitted ? sim_op_at(w, index, position) : NULL;
}

static bool goes_through_queue(const struct sim_op *op)
{
	return op->kind == SIM_OP_KERNEL || op->kind == SIM_OP_WAIT;
}

/*
 * Streams beyond CUDA_DEVICE_MAX_CONNECTIONS share a hardware queue. A queue starts kernels and waits in the order of
 * their submission. So an operation behind an operation of another stream that cannot begin yet cannot begin either.
 */
static bool is_behind_peer(struct sim_world *w, const struct sim_context *context, uint32_t index)
{
	const struct sim_stream *stream = &w->streams[index];
	const struct sim_op *op = sim_queue_head(w, index);
	if (!context->has_shared_queues || !goes_through_queue(op))
		return false;
	for (uint32_t i = 0; i < context->stream_count; i++) {
		uint32_t other = context->streams[i];
		if (other == index || w->streams[other].queue != stream->queue)
			continue;
		const struct sim_op *waiting = first_waiting(w, other);
		if (waiting && waiting->id < op->id && goes_through_queue(waiting))
			return true;
	}
	return false;
}

uint64_t sim_queue_ready_ns(struct sim_world *w, const struct sim_card *card, uint32_t index, bool with_gap)
{
	const struct sim_stream *stream = &w->streams[index];
	const struct sim_op *op = sim_queue_head(w, index);
	const struct sim_context *context = &w->contexts[stream->context];
	uint64_t gap_ns = with_gap && op->kind == SIM_OP_KERNEL && stream->last_end_ns ? card->kernel_gap_ns : 0;
	uint64_t at_ns = later_ns(op->submit_ns + card->launch_ns, stream->last_end_ns + gap_ns);
	if (op->kind == SIM_OP_WAIT) {
		uint64_t done_ns = sim_done_ns(w, op->on_stream, op->on_generation, op->on_position);
		if (done_ns == SIM_NEVER)
			return SIM_NEVER;
		at_ns = later_ns(at_ns, done_ns);
	}
	if (is_behind_peer(w, context, index))
		return SIM_NEVER;
	if (!stream->is_legacy && !stream->is_blocking)
		return at_ns;
	for (uint32_t i = 0; i < context->stream_count; i++) {
		uint32_t other = context->streams[i];
		const struct sim_stream *peer = &w->streams[other];
		if (other == index || !(stream->is_legacy ? peer->is_blocking : peer->is_legacy))
			continue;
		if (sim_queue_is_pending(peer) && sim_queue_head(w, other)->id < op->id)
			return SIM_NEVER;
		at_ns = later_ns(at_ns, peer->last_end_ns);
	}
	return at_ns;
}

void sim_queue_complete(struct sim_world *w, uint32_t index)
{
	struct sim_stream *stream = SIM_EDIT(w, &w->streams[index]);
	struct sim_op *op = SIM_EDIT(w, sim_queue_head(w, index));
	op->state = SIM_OP_DONE;
	op->end_ns = w->now_ns;
	op->done_sequence = w->next_done_sequence;
	(*SIM_EDIT(w, &w->next_done_sequence))++;
	stream->last_end_ns = w->now_ns;
	stream->done++;
}

/* Begins the head if its time has come. Returns whether anything changed. */
static bool begin_head(struct sim_world *w, struct sim_card *card, uint32_t index)
{
	struct sim_op *op = sim_queue_head(w, index);
	if (sim_queue_ready_ns(w, card, index, true) > w->now_ns)
		return false;
	if (op->kind == SIM_OP_COPY && card->turn.copy_free_ns[op->direction] > w->now_ns)
		return false;
	SIM_EDIT(w, op)->start_ns = w->now_ns;
	switch (op->kind) {
	case SIM_OP_KERNEL:
		op->state = SIM_OP_ARRIVED;
		break;
	case SIM_OP_COPY:
		op->state = SIM_OP_RUNNING;
		op->end_ns = w->now_ns + op->length_ns;
		*SIM_EDIT(w, &card->turn.copy_free_ns[op->direction]) = op->end_ns;
		break;
	case SIM_OP_HOST:
	case SIM_OP_VALUE:
		op->state = SIM_OP_RUNNING;
		break;
	default:
		sim_queue_complete(w, index);
	}
	return true;
}

bool sim_queue_settle(struct sim_world *w, struct sim_card *card, uint32_t index)
{
	bool changed = false;
	while (sim_queue_is_pending(&w->streams[index])) {
		const struct sim_op *op = sim_queue_head(w, index);
		if (op->state == SIM_OP_QUEUED && begin_head(w, card, index)) {
			changed = true;
		} else if (op->state == SIM_OP_RUNNING && op->kind == SIM_OP_COPY && op->end_ns <= w->now_ns) {
			sim_queue_complete(w, index);
			changed = true;
		} else {
			break;
		}
	}
	return changed;
}

bool sim_queue_has_kernel(struct sim_world *w, uint32_t stream)
{
	if (!sim_queue_is_pending(&w->streams[stream]) || sim_queue_is_off(w, stream))
		return false;
	const struct sim_op *op = sim_queue_head(w, stream);
	return op->kind == SIM_OP_KERNEL && op->state == SIM_OP_RUNNING && !op->has_yielded;
}

int sim_submit(struct sim_world *w, uint32_t index, const struct sim_op *op, uint64_t *ret_position)
{
	struct sim_stream *stream = &w->streams[index];
	if (stream->submitted - stream->reaped == SIM_RING)
		return -EAGAIN;
	/* The slot is unused until `submitted` rises, so writing it needs no undo. */
	struct sim_op *slot = sim_op_at(w, index, stream->submitted);
	*slot = *op;
	slot->id = w->next_op_id;
	slot->state = SIM_OP_QUEUED;
	slot->submit_ns = w->now_ns;
	(*SIM_EDIT(w, &w->next_op_id))++;
	*ret_position = stream->submitted;
	SIM_EDIT(w, stream)->submitted++;
	sim_commit(w);
	return 0;
}

void sim_finish(struct sim_world *w, uint32_t index, uint64_t position)
{
	if (w->streams[index].done == position && sim_queue_is_pending(&w->streams[index]))
		sim_queue_complete(w, index);
	sim_commit(w);
}
