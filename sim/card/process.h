/*
 * process.h - the processes in the world: how they join, leave, and are removed when they are dead.
 *
 * All functions are called with the world locked and advanced.
 */
#ifndef LOADLINE_SIM_CARD_PROCESS_H
#define LOADLINE_SIM_CARD_PROCESS_H

#include "card/world.h"

/* Returns the slot of this process, and takes one if the process has none. SIM_NONE: there are too many processes. */
uint32_t sim_proc_join(struct sim_world *w);

/* Returns the user ID of the calling process: LOADLINE_SIM_UID, else its own. A world belongs to one user; the variable
 * simulates others. It needs no world. */
uint32_t sim_proc_own_uid(void);

/* Frees a process's slot and all its objects: contexts, modules, memory, shared events, its part in MPS,
 * what it has made by ioctl. */
void sim_proc_leave(struct sim_world *w, uint32_t proc);

/* Returns whether the process of a slot still exists, in any PID namespace, and runs the same program. A zombie does
 * not exist, if its state is visible. */
bool sim_proc_is_alive(const struct sim_world *w, uint32_t index);

/* Returns the pid of a slot's process, as this process sees it. 0: its PID namespace is not visible here. */
int32_t sim_proc_pid(const struct sim_world *w, uint32_t index);

/* Frees the slots of processes that no longer exist. It checks at most every 5 ms; now_ns is CLOCK_MONOTONIC. */
void sim_procs_reap(struct sim_world *w, uint64_t now_ns);

/* The same at once: the driver has freed what a process had when it can be waited for. */
void sim_procs_reap_now(struct sim_world *w);

/* Returns a slot for the stop word of a module that proc has loaded. SIM_NONE: none is left; the module's kernels then
 * share no stop word. */
uint32_t sim_module_new(struct sim_world *w, uint32_t proc);

/* Frees the slot of a module's stop word. SIM_NONE is allowed. */
void sim_module_free(struct sim_world *w, uint32_t module);

#endif
