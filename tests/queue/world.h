/*
 * world.h - a machine and its jobs in model time, with arithmetic of its own: what the queue is compared with.
 *
 * Nothing here calls src/rules/queue. A world starts jobs at the times of its events, and knows of the future only
 * when the running jobs end.
 */
#ifndef LOADLINE_TESTS_QUEUE_WORLD_H
#define LOADLINE_TESTS_QUEUE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/queue/queue.h"

enum { WORLD_CARDS = 8, WORLD_GROUPS = 3, WORLD_TENANTS = 3 };

#define WORLD_NEVER UINT64_MAX
#define MINUTE_NS UINT64_C(60000000000)
#define GIB (UINT64_C(1) << 30)

enum world_kind { WORLD_BY_CARD, WORLD_BY_MEMORY, WORLD_DEPARTMENT, WORLD_KINDS };
extern const char *const world_kind_names[];

/* The description as the queue reads it, with the arrays that it points to. */
struct world_machine {
	struct ll_queue_machine machine;
	struct ll_queue_card cards[WORLD_CARDS];
	struct ll_queue_group groups[WORLD_GROUPS];
	struct ll_queue_tenant tenants[WORLD_TENANTS];
	struct ll_queue_amount guarantees[WORLD_TENANTS][WORLD_GROUPS], limits[WORLD_TENANTS][WORLD_GROUPS];
};

void world_machine_make(struct world_machine *world, enum world_kind kind);

struct world_job {
	struct ll_queue_job facts;
	uint64_t arrival_ns, start_ns; /* WORLD_NEVER: not started */
	uint64_t cards;
};

/* count jobs that a machine of that kind can run, with random sizes, times and arrivals within spread_ns. */
struct world_job *world_jobs_make(const struct world_machine *world, size_t count, uint64_t seed, uint64_t spread_ns);

uint64_t world_random(uint64_t *state);

uint64_t world_job_end(const struct world_job *job);

/* Whether the running jobs (those with a start not after now and an end after it) break a limit of the machine: cards'
 * memory and compute, guarantees of others, limits of tenants and users. Returns what is broken; NULL: nothing. */
const char *world_fault(const struct world_machine *world, struct world_job *const *running, size_t count);

/* How a rule chooses cards: the first ones that fit, or those with the least room left. */
enum world_choice { WORLD_FIRST_FIT, WORLD_BEST_FIT };

/* Places the job beside the running ones. Returns its cards; 0: it cannot start. */
uint64_t world_place(const struct world_machine *world, struct world_job *const *running, size_t count,
		     const struct world_job *job, enum world_choice choice);

enum world_rule { WORLD_STRICT, WORLD_TAKE_FIRST_FIT, WORLD_TAKE_BEST_FIT, WORLD_EASY_BACKFILL, WORLD_RULES };
extern const char *const world_rule_names[];

/* Runs all jobs, in the order of the array, from now on. Jobs with a start already keep it. Returns the time of the
 * last end; WORLD_NEVER: some job never starts. */
uint64_t world_run(const struct world_machine *world, struct world_job *const *jobs, size_t count, uint64_t now_ns,
		   enum world_rule rule);

/* Time of whole cards that the jobs have, in ns. */
double world_work_ns(const struct world_machine *world, const struct world_job *jobs, size_t count);

#endif
