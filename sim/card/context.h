/*
 * context.h - contexts and their streams in the world: made, destroyed, lost.
 *
 * All functions are called with the world locked and advanced. Contexts and streams are slots of the world. Their
 * generation rises when a slot is given to a new one.
 */
#ifndef LOADLINE_SIM_CARD_CONTEXT_H
#define LOADLINE_SIM_CARD_CONTEXT_H

#include "card/world.h"

/*
 * Makes a context with its legacy stream. connections: the number of hardware queues that its other streams share; 0
 * gives each stream its own. A context with one queue takes SIM_LEAN_BYTES less memory.
 *
 * -ENOMEM: the card is full, or an MPS client has reached its limit. -EBUSY: the card's compute mode refuses the
 * process. -ENOSPC: there is no free slot.
 */
int sim_context_new(struct sim_world *w, uint32_t card, uint32_t proc, uint32_t connections, uint32_t *ret_context);

/* Frees a context, its streams and everything queued in them. */
void sim_context_free(struct sim_world *w, uint32_t index);

/* Makes every call in the context return `error` (a status of CUDA) from now on, and drops its queues. */
void sim_context_lose(struct sim_world *w, uint32_t index, uint32_t error);

/* Returns the number of contexts that a process has on a card. proc SIM_NONE: of all processes. */
unsigned sim_context_count(struct sim_world *w, uint32_t card, uint32_t proc);

/* Returns the bytes that the context itself takes if its threads have this stack limit. */
uint64_t sim_context_own_bytes(struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes);

/* Makes a stream. A smaller priority runs first. A blocking stream and the legacy stream wait for each other. -ENOSPC:
 * the context has SIM_CONTEXT_STREAMS streams, or the world has no free slot. */
int sim_stream_new(struct sim_world *w, uint32_t context_index, int32_t priority, bool is_blocking,
		   uint32_t *ret_stream);

/* Destroys a stream. Queued operations are still done. The slot stays in use until the owner has handled all of
 * them. */
void sim_stream_close(struct sim_world *w, uint32_t index);

/* Frees the slot of a destroyed stream if its owner has handled all operations. */
void sim_stream_collect(struct sim_world *w, uint32_t index);

#endif
