/*
 * process_watch.h - who came to the card: from its process list and from its used memory.
 *
 * A process that is merely there, with a context and no work, is not foreign work, and holding beside it costs it
 * nothing (doc/facts.md). But one that *arrives* is about to work: creating a context or taking memory is reported
 * once, as an arrival, and the policy counts the instant as foreign work seen (hold_policy.h): in yield mode the load
 * steps aside, and comes back after --resume-after if nothing more happens. Who was there at the first
 * look is not an arrival: whether it works, other sensors tell.
 *
 * In a PID namespace the driver drops the processes outside from the list: a caller who knows that says is_blind. What
 * is on the list still counts, but an empty list proves nothing; memory is seen everywhere.
 *
 * Caller's memory, no pointers.
 */
#ifndef LOADLINE_CONTROL_PROCESS_WATCH_H
#define LOADLINE_CONTROL_PROCESS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LL_PROCESS_WATCH_MAX = 128 }; /* processes remembered; more are counted, not told apart */

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
	LL_ARRIVAL_GROWTH,  /* a known process took more than the step at once */
	LL_ARRIVAL_MEMORY,  /* memory not ours grew by more than the step at once, whoever took it */
};

struct ll_arrival {
	enum ll_arrival_kind kind;
	uint32_t pid;   /* 0: unknown */
	uint64_t bytes; /* by which memory grew; 0: unknown */
};

/* own_pid is never reported (its MPS server neither: pass that as a known process through the first list). step_bytes
 * 0: the default, 8 MiB. */
void ll_process_watch_init(struct ll_process_watch *watch, uint32_t own_pid, uint64_t step_bytes);

/* From now on this is the own process: a payload's process is a new one for each context. */
void ll_process_watch_own(struct ll_process_watch *watch, uint32_t own_pid);

/*
 * A fresh list of every process on the card. The first list is the baseline and reports nothing. A pid may be
 * listed twice (compute and graphics): its memory is then the larger. Of several arrivals one is reported, new
 * processes before growth. Returns true when there is one, and only then writes *ret_arrival.
 */
bool ll_process_watch_list(struct ll_process_watch *watch, const struct ll_card_process *processes, size_t count,
			   bool is_blind, struct ll_arrival *ret_arrival);

/*
 * A fresh reading of the card's used memory, of which own_bytes are ours (known from the opening of our context).
 * is_own_steady false (a context is being opened or closed) makes this reading a new baseline.
 */
bool ll_process_watch_memory(struct ll_process_watch *watch, uint64_t used_bytes, uint64_t own_bytes,
			     bool is_own_steady, struct ll_arrival *ret_arrival);

/* Forgets everything seen: the next list and the next reading are baselines (after suspend, a lost card, a pause). */
void ll_process_watch_reset(struct ll_process_watch *watch);

/* Foreign processes on the last list; meaningless when it was blind. */
size_t ll_process_watch_count(const struct ll_process_watch *watch);

#endif
