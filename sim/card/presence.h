/*
 * presence.h - a lock on a byte of the world's file for each process in the world. The kernel frees it when the process
 * ends, however it ends, and when it executes another program, and shows it in every PID namespace.
 */
#ifndef LOADLINE_SIM_CARD_PRESENCE_H
#define LOADLINE_SIM_CARD_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Locks a slot, and unlocks the slot that this process had before. A forked child does not have the lock. False:
 * locking failed, or another process has the lock. */
bool sim_presence_take(uint32_t slot);

/* Returns whether a process has the lock of a slot. True if that is unknown. */
bool sim_presence_is_taken(uint32_t slot);

#endif
