/*
 * fault.h - calls that fail or hang because the scenario says so. The world must be locked. engine.h has the function
 * that the libraries call.
 */
#ifndef LOADLINE_SIM_CARD_FAULT_H
#define LOADLINE_SIM_CARD_FAULT_H

#include "card/words.h"

/* Counts a call of this function. Returns the status to return at once; 0: none. *ret_until_ns: when the call may
 * continue, if the function hangs or the machine is suspended. The world is brought up to now. */
uint32_t sim_fault_find(struct sim_world *w, const char *function, uint64_t *ret_until_ns);

/* Makes every call check for faults. Call it when a fault or a suspension begins. */
void sim_faults_announce(struct sim_world *w);

/* Parses [for D] [after N] [count N] from word i on into a fault. */
int sim_fault_parse_limits(const struct sim_world *w, const struct sim_words *words, int i, struct sim_fault *fault,
			   struct ll_err *err);

/* Adds a fault. -ENOSPC: there are too many. */
int sim_fault_add(struct sim_world *w, const struct sim_fault *fault, struct ll_err *err);

#endif
