/*
 * fault.h - calls that fail or hang because the scenario says so.
 */
#ifndef LOADLINE_SIM_CARD_FAULT_H
#define LOADLINE_SIM_CARD_FAULT_H

#include "card/world.h"

/* Every exported function begins with this, unlocked, giving its own name. Sleeps for as long as the function is to
 * hang (or the machine is suspended). Returns the status to answer at once, or 0 to go on. One load while there is no
 * fault. */
uint32_t sim_fault_check(struct sim_world *w, const char *function);

/* The same for who must not sleep: *ret_until_ns is when the call may go on. Within the world's lock, advanced. */
uint32_t sim_fault_find(struct sim_world *w, const char *function, uint64_t *ret_until_ns);

/* Makes every call look. Called, locked, when a fault or a suspension begins. */
void sim_faults_announce(struct sim_world *w);

#endif
