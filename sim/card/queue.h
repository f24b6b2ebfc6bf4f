/*
 * queue.h - streams as queues: when an operation may begin, and what it does without the SMs. A part of the engine
 * (engine.h), whose functions these are.
 */
#ifndef LOADLINE_SIM_CARD_QUEUE_H
#define LOADLINE_SIM_CARD_QUEUE_H

#include "card/world.h"

/* Walks the streams of one tenant's contexts on a card; SIM_NONE: of everybody's. */
struct sim_walk {
	const struct sim_card *card;
	uint32_t tenant, context, stream;
};

bool sim_walk_next(struct sim_world *w, struct sim_walk *walk, uint32_t *ret_stream);

#define SIM_EACH_STREAM(w, of_card, of_tenant, index)                                                                  \
	for (struct sim_walk walk_ = {.card = (of_card), .tenant = (of_tenant)}; sim_walk_next(w, &walk_, &(index));)

static inline bool sim_queue_is_pending(const struct sim_stream *stream)
{
	return stream->done < stream->submitted;
}

static inline struct sim_op *sim_queue_head(struct sim_world *w, uint32_t stream)
{
	return sim_op_at(w, stream, w->streams[stream].done);
}

/*
 * When the queue's head may begin, apart from waiting for room or for its context's turn. SIM_NEVER: it waits for
 * something whose end is not known yet. Operations of the legacy stream and of blocking streams hold each other up in
 * the order in which they were submitted. with_gap: the card's pause between two kernels counts.
 */
uint64_t sim_queue_ready_ns(struct sim_world *w, const struct sim_card *card, uint32_t index, bool with_gap);

/* The head is done, now. */
void sim_queue_complete(struct sim_world *w, uint32_t index);

/* Moves a queue on as far as it goes without the SMs. Returns whether anything changed. */
bool sim_queue_settle(struct sim_world *w, struct sim_card *card, uint32_t index);

/* Is the head a kernel with blocks on the card? */
bool sim_queue_has_kernel(struct sim_world *w, uint32_t stream);

#endif
