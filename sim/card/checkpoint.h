/*
 * checkpoint.h - a process that another process stops, checkpoints and restores (cuCheckpointProcess...).
 *
 * All functions are called with the world locked and advanced.
 */
#ifndef LOADLINE_SIM_CARD_CHECKPOINT_H
#define LOADLINE_SIM_CARD_CHECKPOINT_H

#include "card/world.h"

/* Returns the slot of the living process with this pid. SIM_NONE: the process does not use CUDA, or has ended. */
uint32_t sim_checkpoint_find(const struct sim_world *w, int pid);

/* Puts the process into a state. */
void sim_checkpoint_set(struct sim_world *w, uint32_t proc, enum sim_stop stop);

/* Returns whether a card has work of the process. */
bool sim_checkpoint_is_busy(struct sim_world *w, uint32_t proc);

/* Restores the process's memory on the cards: from SIM_STOP_CHECKPOINTED to SIM_STOP_LOCKED. -ENOMEM: a card has no
 * room for it, and nothing changes. */
int sim_checkpoint_restore(struct sim_world *w, uint32_t proc);

#endif
