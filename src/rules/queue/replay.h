/*
 * replay.h - what the queue would have done with arrivals of the past: order, plan and loans (queue.h, lend.h) in model
 * time, from event to event.
 *
 * Each job runs as long as it ran, beside whomever. A recalled borrower takes LL_REPLAY_LEAVE_NS to leave, sleeps, and
 * goes on as in lend.h; one that can only be stopped ends there.
 */
#ifndef LOADLINE_RULES_QUEUE_REPLAY_H
#define LOADLINE_RULES_QUEUE_REPLAY_H

#include "rules/queue/lend.h"

#define LL_REPLAY_LEAVE_NS UINT64_C(1000000000)

/* So many waiting jobs have a planned start, and of one user: fewer than in loadlined, since each event needs a plan.
 */
enum { LL_REPLAY_PLANNED_MAX = 64, LL_REPLAY_PLANNED_OF_USER = 16 };

struct ll_replay_job {
	/* set by the caller */
	struct ll_queue_job queued; /* as before ll_queue_add; its number is its place in the array, from 1 */
	uint64_t came_ns, runs_ns;  /* runs_ns: at least 1 */
	bool is_refused;            /* it never comes */
	bool may_borrow;
	/* results */
	uint64_t began_ns;    /* LL_QUEUE_NONE: it did not begin */
	uint64_t on_card_ns;  /* without sleep */
	uint64_t borrowed_ns; /* of it */
	unsigned recalls;     /* a stop is one too */
	/* inside */
	enum ll_lend_state state;
	bool is_pooled;
	unsigned pauses;   /* recalls since it had room of its own */
	uint64_t since_ns; /* when its state began */
};

struct ll_replay {
	const struct ll_queue_machine *machine;
	struct ll_queue_rules rules;
	bool has_backfill;
	uint64_t half_life_ns;
	uint32_t steps; /* 0: nothing is lent. The others are those of struct ll_lend */
	uint64_t pool_bytes, min_runtime_ns;
	const uint64_t *keep_free_bytes;
	struct ll_replay_job *jobs; /* by came_ns */
	size_t count;
};

/* Runs all jobs, and fills in their results. -ENOMEM. */
int ll_replay_run(const struct ll_replay *replay);

#endif
