/*
 * gather.h - evicts or suspends several processes together.
 *
 * Ranks of a training wait for each other inside kernels. If one rank is stopped, the kernels of the others may never
 * end. So all ranks are requested to stop at the same time, and memory moves only when all are stopped. A rank may have
 * launched a kernel that needs the next kernel of another rank, which then cannot stop. In that case those that are
 * stopped run for a moment, and all are requested again, each time with a longer wait.
 *
 * A decision (residency.h) gathers the members of a unit. A command gathers the programs that it names. If one of them
 * cannot stop, none is stopped.
 *
 * Private to residency.c and move_requests.c.
 */
#ifndef LOADLINE_DAEMON_RESIDENCY_GATHER_H
#define LOADLINE_DAEMON_RESIDENCY_GATHER_H

#include "daemon/residency/residency.h"

struct ll_gather;

/* What is done when all are stopped. */
enum ll_gather_end { LL_GATHER_EVICT, LL_GATHER_SUSPEND };

/*
 * Makes an empty gather. wait_ns: how long stopping may take at the last attempt, 0: 10 s; all attempts before it take
 * at most as long together. is_by_hand: for a command. NULL: no memory.
 */
struct ll_gather *ll_gather_new(struct ll_residency_books *books, enum ll_gather_end end, bool is_by_hand,
				uint64_t wait_ns, uint64_t now_ns);

/* Adds a process that is in no gather. It stays in this one until the gather ends. */
void ll_gather_add(struct ll_gather *gather, struct ll_evictable *evictable);

/* Does the next step of the gather. */
void ll_gather_look(struct ll_residency_books *books, struct ll_gather *gather, uint64_t now_ns);

/* Does the next steps of all gathers. Call it as time passes. */
void ll_gathers_tick(struct ll_residency_books *books, uint64_t now_ns);

/* When ll_gathers_tick is due; UINT64_MAX: only when something changes. */
uint64_t ll_gathers_due_ns(const struct ll_residency_books *books);

/* A process could not stop, or its eviction failed; evictable->why has the reason. */
void ll_gather_fail(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

/* A command wants another state of one process. Before all are stopped this ends the gather, and all processes go on.
 * After that it removes this process only. */
void ll_gather_remove(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

/* The process has ended. The gather continues without it. */
void ll_gather_forget(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

void ll_gathers_fini(struct ll_residency_books *books);

#endif
