/*
 * gather.h - processes that leave the card, or stop there, together.
 *
 * Ranks of a training wait for each other inside kernels. If one is stopped, the kernels of the others may never end.
 * So all are asked to stop at once, and only when all are quiet does memory move. Even then one may have launched a
 * kernel that needs another's next one. Then those that could stop go on for a moment, and all are asked again, a
 * little more patiently each time.
 *
 * A decision (residency.h) gathers the members of a unit. A command gathers the programs that it was given, and has
 * their wishes: if one cannot stop, none does.
 *
 * Private to residency.c and move_requests.c.
 */
#ifndef LOADLINE_DAEMON_GATHER_H
#define LOADLINE_DAEMON_GATHER_H

#include "daemon/residency.h"

struct ll_gather;

/* What is done when all are quiet. */
enum ll_gather_end { LL_GATHER_EVICT, LL_GATHER_SUSPEND };

/*
 * wait_ns: how long they may take to become quiet at the last attempt, 0: 10 s; the attempts before take at most as
 * long together. is_by_hand: a command has asked. NULL: no memory.
 */
struct ll_gather *ll_gather_new(struct ll_residency_books *books, enum ll_gather_end end, bool is_by_hand,
				uint64_t wait_ns, uint64_t now_ns);

/* The process must be in none. It is in this one until the gather ends. */
void ll_gather_add(struct ll_gather *gather, struct ll_evictable *evictable);

/* Does what is to be done next. */
void ll_gather_look(struct ll_residency_books *books, struct ll_gather *gather, uint64_t now_ns);

/* As time passes: all of them. */
void ll_gathers_tick(struct ll_residency_books *books, uint64_t now_ns);

/* When that is due; UINT64_MAX: not by time. */
uint64_t ll_gathers_due_ns(const struct ll_residency_books *books);

/* A process could not stop or leave: why says what for. */
void ll_gather_fail(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

/* A person wants something else of one of them. Until all were quiet that ends it for all, and they go on. After that
 * it ends it for this one alone. */
void ll_gather_remove(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

/* The process has ended. The others go on without it. */
void ll_gather_forget(struct ll_residency_books *books, struct ll_evictable *evictable, uint64_t now_ns);

void ll_gathers_fini(struct ll_residency_books *books);

#endif
