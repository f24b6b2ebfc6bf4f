/*
 * queue.h - streams as queues: submitting operations, when an operation may begin, and operations that need no SMs.
 *
 * All functions are called with the world locked and advanced.
 */
#ifndef LOADLINE_SIM_CARD_QUEUE_H
#define LOADLINE_SIM_CARD_QUEUE_H

#include "card/world.h"

/* Appends a copy of op to a stream. The caller sets the kind, the length and so on; the function sets the identity and
 * the times. ret_position: the position of the operation in the stream. -EAGAIN: the queue is full (SIM_RING). */
int sim_submit(struct sim_world *w, uint32_t index, const struct sim_op *op, uint64_t *ret_position);

/* Ends, at the world's now, an operation that only its owner can end: SIM_OP_HOST or SIM_OP_VALUE. */
void sim_finish(struct sim_world *w, uint32_t index, uint64_t position);

/* Returns when operation `position` of a stream was done, by CLOCK_MONOTONIC. SIM_NEVER: it is not done yet. 0: the
 * slot belongs to a stream of another generation, so the operation was done long ago. */
uint64_t sim_done_ns(struct sim_world *w, uint32_t index, uint32_t generation, uint64_t position);

/* Iterates over the streams of one tenant's contexts on a card; tenant SIM_NONE: of all tenants. Use
 * SIM_EACH_STREAM. */
struct sim_walk {
	const struct sim_card *card;
	uint32_t tenant, context, stream;
};

/* Finds the next stream of an iteration. Returns false at the end. */
bool sim_walk_next(struct sim_world *w, struct sim_walk *walk, uint32_t *ret_stream);

#define SIM_EACH_STREAM(w, of_card, of_tenant, index)                                                                  \
	for (struct sim_walk walk_ = {.card = (of_card), .tenant = (of_tenant)}; sim_walk_next(w, &walk_, &(index));)

/* Returns whether the queue has an operation that is not done. */
static inline bool sim_queue_is_pending(const struct sim_stream *stream)
{
	return stream->done < stream->submitted;
}

/* Returns the oldest operation that is not done. The queue must be pending. */
static inline struct sim_op *sim_queue_head(struct sim_world *w, uint32_t stream)
{
	return sim_op_at(w, stream, w->streams[stream].done);
}

/*
 * Returns when the queue's head may begin, apart from waiting for room or for its context's turn. SIM_NEVER: the head
 * waits for an operation whose end is not known yet. Operations of the legacy stream and of blocking streams wait for
 * each other in the order of submission. with_gap: the card's pause between two kernels counts.
 */
uint64_t sim_queue_ready_ns(struct sim_world *w, const struct sim_card *card, uint32_t index, bool with_gap);

/* Marks the head as done at the world's now. */
void sim_queue_complete(struct sim_world *w, uint32_t index);

/* Advances a queue as far as possible without the SMs. Returns whether anything changed. */
bool sim_queue_settle(struct sim_world *w, struct sim_card *card, uint32_t index);

/* Returns the compute channel of its context that a stream is on, as a bit: that of its hardware queue. */
static inline uint32_t sim_queue_channel(const struct sim_stream *stream)
{
	return UINT32_C(1) << (stream->queue == SIM_NONE ? 0 : stream->queue % 32);
}

/* Returns whether that channel is off, so that the stream's kernels stand (turn.h). */
static inline bool sim_queue_is_off(const struct sim_world *w, uint32_t stream)
{
	const struct sim_stream *on = &w->streams[stream];
	return w->contexts[on->context].off_channels & sim_queue_channel(on);
}

/* Returns whether the head is a kernel with blocks on the card, or with blocks that are saved until its context has the
 * next turn. False while its channel is off. */
bool sim_queue_has_kernel(struct sim_world *w, uint32_t stream);

#endif
