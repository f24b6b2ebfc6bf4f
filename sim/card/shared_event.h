/*
 * shared_event.h - events that several processes know: where in which stream the last record is. World locked.
 */
#ifndef LOADLINE_SIM_CARD_SHARED_EVENT_H
#define LOADLINE_SIM_CARD_SHARED_EVENT_H

#include "card/world.h"

/* A slot held by proc. SIM_NONE: there are too many. */
uint32_t sim_shared_event_new(struct sim_world *w, uint32_t proc);
/* Another holder. False: it is gone, or the slot is another one's by now. */
bool sim_shared_event_join(struct sim_world *w, uint32_t index, uint32_t generation, uint32_t proc);
/* The slot is free when nobody holds it. */
void sim_shared_event_leave(struct sim_world *w, uint32_t index, uint32_t proc);
/* Everything that a process holds. */
void sim_shared_events_drop(struct sim_world *w, uint32_t proc);

#endif
