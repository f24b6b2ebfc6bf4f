/*
 * population.h - who is in the world: processes, their contexts, streams and module slots; and what ends them.
 *
 * All called with the world locked and advanced.
 */
#ifndef LOADLINE_SIM_CARD_POPULATION_H
#define LOADLINE_SIM_CARD_POPULATION_H

#include "card/world.h"

/* This process's slot, taken if it has none. SIM_NONE: too many processes. */
uint32_t sim_proc_join(struct sim_world *w);
void sim_proc_leave(struct sim_world *w, uint32_t proc);

bool sim_proc_is_alive(const struct sim_proc *proc);

/* Frees what processes have left that no longer exist; looks at most every 5 ms. */
void sim_procs_reap(struct sim_world *w, uint64_t now_ns);

/* Is there room for `bytes` more on the card? And within what an MPS client may have? */
bool sim_card_has_room(struct sim_world *w, uint32_t card, uint64_t bytes);
bool sim_proc_has_room(struct sim_world *w, uint32_t card, uint32_t proc, uint64_t bytes);

/* All memory in use on a card (without what the driver reserves), and one process's share of it. What processes hold
 * outside of contexts (holding.h) is in both. */
uint64_t sim_card_used_bytes(struct sim_world *w, uint32_t card);
uint64_t sim_proc_used_bytes(struct sim_world *w, uint32_t card, uint32_t proc);
uint64_t sim_context_used_bytes(const struct sim_context *context);
/* What the context itself takes with this stack limit. */
uint64_t sim_context_own_bytes(struct sim_world *w, const struct sim_context *context, uint64_t stack_bytes);

/* Number of contexts that a process has on a card; SIM_NONE: all processes. */
unsigned sim_context_count(struct sim_world *w, uint32_t card, uint32_t proc);

/* A context with its legacy stream, and this many hardware queues for the others (0: one for each; 1 takes a little
 * less memory). -ENOMEM: the card is full, or an MPS client has what it may have. -EBUSY: its compute mode refuses.
 * -ENOSPC: no slot. */
int sim_context_new(struct sim_world *w, uint32_t card, uint32_t proc, uint32_t connections, uint32_t *ret_context);
void sim_context_free(struct sim_world *w, uint32_t index);

/* Every call in the context answers `error` from now on; its queues are dropped. */
void sim_context_lose(struct sim_world *w, uint32_t index, uint32_t error);

/* -ENOSPC: the context has all the streams it can have. */
int sim_stream_new(struct sim_world *w, uint32_t context_index, int32_t priority, bool is_blocking,
		   uint32_t *ret_stream);
/* The slot lives until its queue is empty and reaped. */
void sim_stream_close(struct sim_world *w, uint32_t index);
void sim_stream_collect(struct sim_world *w, uint32_t index);

/* A slot for a module's stop word. SIM_NONE: none left (its kernels then share none). */
uint32_t sim_module_new(struct sim_world *w, uint32_t proc);
void sim_module_free(struct sim_world *w, uint32_t module);

/* An Xid on a card: reported through NVML; every context there (of one process; pid 0: of all) answers error. */
void sim_card_xid(struct sim_world *w, uint32_t card, uint32_t xid, uint32_t error, int32_t pid);

/* One context's own doing: an Xid on its card, and only this context is lost. */
void sim_report_fault(struct sim_world *w, uint32_t context, uint32_t xid, uint32_t error);

#endif
