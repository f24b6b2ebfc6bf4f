/*
 * trace.h - the trace of context switches: which tenant's state has come on a card, and gone (abi/rm_trace.h).
 *
 * A tenant stays until another comes, or until all its channels are off. So a program that is alone has no records.
 * What is noted is delivered each 33 ms, or when it is asked for. It goes into memories that programs map: files of the
 * world's folder, which whoever simulates the world writes.
 *
 * A trace has the processes of its own user. A trace of all users has the others too, without name and with blurred
 * times, unless its user is root.
 *
 * All functions are called with the world locked.
 */
#ifndef LOADLINE_SIM_CARD_TRACE_H
#define LOADLINE_SIM_CARD_TRACE_H

#include "abi/rm_trace.h"
#include "card/world.h"

/* Makes the file of a memory, opens it, and removes it. Opening returns -1 with errno on failure. */
bool sim_memory_make(uint32_t number, uint64_t bytes);
int sim_memory_open(uint32_t number, int flags);
void sim_memory_drop(uint32_t number);

/* Makes a trace in two memories, for records of 32 bytes. SIM_NONE: there are too many. */
uint32_t sim_trace_new(struct sim_world *w, uint32_t header, uint32_t records, uint32_t count);
void sim_trace_free(struct sim_world *w, uint32_t index);

/* Lets it have the switches of a card that this user may see. */
void sim_trace_bind(struct sim_world *w, uint32_t index, uint32_t card, uint32_t uid, bool all_users);
void sim_trace_enable(struct sim_world *w, uint32_t index, bool is_on);

/* Gives the room of the records before `get` back. */
void sim_trace_set_get(struct sim_world *w, uint32_t index, uint32_t get);

/* Notes that a tenant's state comes (LL_RM_SWITCH_START) or goes at a time of CLOCK_MONOTONIC, which may be soon. */
void sim_trace_note(struct sim_world *w, const struct sim_card *card, uint32_t tenant, enum ll_rm_switch_tag tag,
		    uint64_t at_ns);

/* Delivers what has been noted, now; and of all traces, what is due. */
void sim_trace_deliver(struct sim_world *w, uint32_t index);
void sim_traces_deliver_due(struct sim_world *w);

#endif
