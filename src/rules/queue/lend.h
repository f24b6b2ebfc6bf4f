/*
 * lend.h - lends what guarantees leave idle, and takes it back.
 *
 * The plan (queue.h) does not see a job that borrows: order, backfill, windows and guarantees are what they would be
 * without it. So a job that is due may find borrowers on its cards. They go, and nobody else does:
 *
 *   - Compute. A borrower is of class low while it borrows, so its time on the card is taken at once. Nothing is done
 *     here.
 *   - Memory. Borrowers fall asleep (their memory leaves the cards, and they wait), or are stopped. All of them are
 *     chosen first. If the job does not fit then, nobody is touched. A borrower without which it fits too is not
 * chosen. All cards of a borrower are taken back, or none.
 *
 * Memory is lent only if it can be taken back: all that is lent with the step `evict` fits into the host memory for
 * eviction, which is split evenly over the NUMA nodes of the cards. Beyond that it is lent only with `stop` or `kill`.
 *
 * A borrower never takes from anybody, and a job that does not borrow is never taken from. So each reclaim makes the
 * lent memory on the cards less, and none gives rise to another: only a start by the plan causes one. A search looks
 * once at each borrower, so its length is known, and it always ends with an answer.
 *
 * Pure arithmetic, with the units of queue.h.
 */
#ifndef LOADLINE_RULES_QUEUE_LEND_H
#define LOADLINE_RULES_QUEUE_LEND_H

#include "rules/queue/queue.h"

/* What a job that has its place has of its cards now. */
enum ll_lend_state {
	LL_LEND_RUNS,     /* what it asked for */
	LL_LEND_RESERVED, /* nothing yet: borrowers leave for it. The room is no one else's */
	LL_LEND_LEAVING,  /* its memory yet. The room is promised to others */
	LL_LEND_ASLEEP,   /* nothing */
};

/* How a borrower gives its memory back, the gentlest first. */
enum ll_lend_step { LL_LEND_STAY, LL_LEND_EVICT_IDLE, LL_LEND_EVICT, LL_LEND_STOP, LL_LEND_KILL };

struct ll_lend_job {
	const struct ll_queue_job *job; /* a running one of the queue; is_lent: it borrows */
	enum ll_lend_state state;
	bool is_pooled;         /* its memory has room in the host memory for eviction */
	bool is_idle;           /* it has used its cards for nothing since idle-after */
	bool is_spared;         /* its min-runtime is not over */
	enum ll_lend_step step; /* set by ll_lend_claim */
};

struct ll_lend {
	const struct ll_queue *queue;
	struct ll_lend_job *jobs; /* all running jobs of the queue; the caller's */
	size_t count;
	uint64_t now_ns;
	uint32_t steps;                  /* a bit for each ll_lend_step that may be taken */
	uint64_t pool_bytes;             /* host memory for eviction; 0: none */
	const uint64_t *keep_free_bytes; /* of each tenant: of its guarantee, on one card of the group */
};

/* The cards on which a waiting job may borrow now; 0: it may not. They have room for it, compute too; no limit of its
 * tenant or user and no window forbids it; each tenant's keep-free stays free beside it; and its memory can come back.
 * ret_is_pooled: by eviction. -ENOMEM is 0 too. */
uint64_t ll_lend_borrow(const struct ll_lend *lend, const struct ll_queue_job *job, bool *ret_is_pooled);

/* Whether a sleeping job fits on its cards now. Its compute is not asked for: it takes what others leave. */
bool ll_lend_may_return(const struct ll_lend *lend, const struct ll_queue_job *job);

/*
 * A job claims its planned cards. Returns whether it fits there once the borrowers with another step than
 * LL_LEND_STAY have left; if it does not, no job has a step. The longest idle, the last to borrow, and those that need
 * not be stopped go first.
 */
bool ll_lend_claim(struct ll_lend *lend, const struct ll_queue_job *job);

/* The cards on which the job would find no borrower in its way. */
uint64_t ll_lend_free_cards(const struct ll_lend *lend, const struct ll_queue_job *job);

/* Whether the room for a reserved job is there: those that leave have left. */
bool ll_lend_is_there(const struct ll_lend *lend, const struct ll_queue_job *job);

/* How long a borrower waits after it was recalled so often, before it borrows again: twice as long each time. */
uint64_t ll_lend_pause_ns(unsigned recalls);

#endif
