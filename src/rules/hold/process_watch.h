/*
 * process_watch.h - new processes on a card, found in its process list and its used memory.
 *
 * A process that has a context and does not work is not foreign work; holding beside it costs it nothing
 * (doc/facts.md). But a process that arrives is about to work. Making a context or taking memory is reported once, as
 * an arrival, and the policy counts it as foreign work (hold_policy.h): in yield mode the load stops, and goes on after
 * --resume-after if nothing else is seen. Processes on the first list are not arrivals; other sensors see whether they
 * work.
 *
 * In a PID namespace the driver leaves processes outside of it off the list. A caller that knows this says is_blind.
 * Listed processes then still count, but a missing one proves nothing. The used memory is seen everywhere.
 *
 * The struct has no pointers and is in the caller's memory.
 */
#ifndef LOADLINE_RULES_HOLD_PROCESS_WATCH_H
#define LOADLINE_RULES_HOLD_PROCESS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LL_PROCESS_WATCH_MAX = 128 }; /* processes remembered by pid; further ones are only counted */

struct ll_card_process {
	uint32_t pid;
	uint64_t memory_bytes; /* 0: unknown */
};

struct ll_process_watch {
	uint32_t own_pid;
	uint64_t step_bytes;
	size_t count;
	size_t unlisted_count;
	struct ll_card_process known[LL_PROCESS_WATCH_MAX];
	bool has_list;
	bool has_memory;
	bool is_blind;
	uint64_t foreign_bytes;
};

enum ll_arrival_kind {
	LL_ARRIVAL_NONE,
	LL_ARRIVAL_PROCESS, /* a process that was not on the list */
	LL_ARRIVAL_GROWTH,  /* a known process took more than step_bytes at once */
	LL_ARRIVAL_MEMORY,  /* the memory of all others grew by more than step_bytes at once */
};

struct ll_arrival {
	enum ll_arrival_kind kind;
	uint32_t pid;   /* 0: unknown */
	uint64_t bytes; /* by which memory grew; 0: unknown */
};

/* own_pid is never reported. An MPS server of our own is not either if it is on the first list. step_bytes 0: the
 * default, 8 MiB. */
void ll_process_watch_init(struct ll_process_watch *watch, uint32_t own_pid, uint64_t step_bytes);

/* Changes the own process, because each context may have a new one. */
void ll_process_watch_own(struct ll_process_watch *watch, uint32_t own_pid);

/*
 * Takes a new list of the card's processes. True: there is an arrival, in *ret_arrival. The first list is the baseline
 * and reports nothing. A pid may be listed twice (compute and graphics); the larger memory counts. Of several arrivals
 * one is reported, a new process before growth.
 */
bool ll_process_watch_list(struct ll_process_watch *watch, const struct ll_card_process *processes, size_t count,
			   bool is_blind, struct ll_arrival *ret_arrival);

/*
 * Takes a new reading of the card's used memory. own_bytes of it are ours. True: there is an arrival, in *ret_arrival.
 * is_own_steady false, while our context is being made or closed, makes this reading a new baseline.
 */
bool ll_process_watch_memory(struct ll_process_watch *watch, uint64_t used_bytes, uint64_t own_bytes,
			     bool is_own_steady, struct ll_arrival *ret_arrival);

/* Makes the next list and the next reading baselines: after suspend, a lost card or a pause. */
void ll_process_watch_reset(struct ll_process_watch *watch);

/* Returns the number of foreign processes on the last list. It means nothing if that list was blind. */
size_t ll_process_watch_count(const struct ll_process_watch *watch);

#endif
