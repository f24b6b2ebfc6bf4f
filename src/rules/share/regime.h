/*
 * regime.h - chooses how the jobs of a card share it: by slices (all gates are open, and the time slices of the card
 * serve all jobs) or by visits (one job after the other has the card, visits.h).
 *
 * Slices are the rule. If all programs launch ahead, slices lose nothing. If a program waits for each of its launches,
 * visits are better: slices serve such a program one kernel at a time, and each kernel costs two switches. Only visits
 * know weights: slices give every process with work the same time. The behaviour of a single program does not tell
 * which of the two is better for a mix of programs (doc/share.md). So both are measured on the mix. If there has been
 * a reason for visits (ll_regime_has_reason) for LL_REGIME_SETTLE_NS, a measurement runs in four blocks: the present
 * way of sharing, the other way twice, and the present way again. The measure is the progress of each job: the launches
 * that the card has completed by visits, divided by those by slices. Visits are kept only if they pay:
 *
 *   - Gain: the sum of w log(progress) over all jobs is at least LL_REGIME_GAIN. If it is less, but at least
 *     LL_REGIME_GAIN_LONG, four more blocks are measured, and LL_REGIME_GAIN_LONG over all eight is enough. The gain is
 *     not needed if the user asked for shares (weights or numbers of processes differ), and a job with less than its
 * due by slices has more by visits. The due of a job is its share of its speed alone. Its speed alone is its launches
 *     divided by the time in which it is visited.
 *   - No loser: no job has less than LL_REGIME_LEAST of its speed by slices, or of its due, whichever is less.
 *
 * The measurement is repeated after 10, 30, 90 and 300 s, and soon after the mix has changed. The results of the last
 * LL_REGIME_MIXES mixes are kept, because jobs come and go. The time for measurements is bounded by a credit that grows
 * with time.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_SHARE_REGIME_H
#define LOADLINE_RULES_SHARE_REGIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reason for visits, or a new mix of jobs, counts after this time. */
#define LL_REGIME_SETTLE_NS UINT64_C(500000000)
/* The length of a block: at least LL_REGIME_BLOCK_NS, and until each job has completed LL_REGIME_ENOUGH launches, but
 * at most LL_REGIME_BLOCK_MOST_NS. If the user asked for shares, the length is LL_REGIME_BLOCK_ASKED_NS, which is long
 * compared with LL_VISIT_LAG_NS. */
#define LL_REGIME_BLOCK_NS UINT64_C(150000000)
#define LL_REGIME_BLOCK_MOST_NS UINT64_C(300000000)
#define LL_REGIME_BLOCK_ASKED_NS UINT64_C(400000000)
enum { LL_REGIME_ENOUGH = 20 };
/* Before a block of visits, the launches that were queued before must end. Meanwhile the card is shared by slices. If
 * it takes longer than this, the measurement is given up. The second time holds if the user asked for shares. */
#define LL_REGIME_DRAIN_NS UINT64_C(5000000000)
#define LL_REGIME_DRAIN_ASKED_NS UINT64_C(30000000000)
/* The first part of a block that is not measured. It is longer if the user asked for shares, because visits need some
 * time to reach them. */
#define LL_REGIME_SKIP_NS UINT64_C(30000000)
#define LL_REGIME_SKIP_ASKED_NS UINT64_C(100000000)
/* Measurements take at most 1 / LL_REGIME_CREDIT_PART of the time. LL_REGIME_CREDIT_NS is the most that can be saved. A
 * measurement needs half of it. The first one of a mix in which the user asked for shares needs none. */
#define LL_REGIME_CREDIT_NS INT64_C(2400000000)
enum { LL_REGIME_CREDIT_PART = 50 };

#define LL_REGIME_GAIN 0.18       /* 20 % for each job */
#define LL_REGIME_GAIN_LONG 0.095 /* 10 %, after twice as many blocks */
#define LL_REGIME_MORE 1.07       /* ratio from which one speed counts as more than another */
#define LL_REGIME_LEAST 0.93

enum {
	LL_REGIME_JOBS = 64, /* with more jobs nothing is measured: visits, if there is a reason for them */
	LL_REGIME_MIXES = 8, /* of which the verdict is kept */
};

/* A job that has wanted the card recently. */
struct ll_regime_job {
	uint64_t id;
	uint64_t completed;       /* launches that the card has finished, counted from any start */
	uint64_t queued_launches; /* launches that the job has made and the card has not finished */
	uint64_t visited_ns;      /* how long it was visited, counted from any start */
	unsigned weight_permille; /* 1000: weight 1 */
	unsigned processes;
	bool has_slices; /* its time slices are by its weight and its processes */
	bool waits;      /* one of its processes waits for each of its launches, or for less work than a time slice */
};

/* Why a card is shared as it is. */
enum ll_regime_why {
	LL_REGIME_NO_REASON, /* no job waits for each launch or for short work, and all have the same weight and number
				of processes */
	LL_REGIME_NOT_MEASURED,
	LL_REGIME_MEASURES,
	LL_REGIME_PAYS,     /* visits were measured to pay */
	LL_REGIME_PAYS_NOT, /* visits were measured not to pay */
	LL_REGIME_TOO_DEEP, /* the queued launches took too long, so nothing was measured */
	LL_REGIME_TOO_MANY, /* more than LL_REGIME_JOBS jobs */
};

/* What a step did. One step may do several of these. */
enum ll_regime_move {
	LL_REGIME_MOVE_MIX = 1,       /* the mix has changed, or has lasted for long enough to be known */
	LL_REGIME_MOVE_BEGINS = 2,    /* a measurement begins, with its first block */
	LL_REGIME_MOVE_DRAINED = 4,   /* the launches that were queued before the block have ended */
	LL_REGIME_MOVE_MEASURES = 8,  /* the measured part of the block begins */
	LL_REGIME_MOVE_BLOCK = 16,    /* a block has ended */
	LL_REGIME_MOVE_VERDICT = 32,  /* the measurement has ended with a result */
	LL_REGIME_MOVE_GIVES_UP = 64, /* the measurement has ended without a result */
	LL_REGIME_MOVE_OUTPUT = 128,  /* gives_visits, why or gain has changed */
};

/* Speeds of a job in a measurement, in launches a second. alone: while it was visited; 0: it was not. */
struct ll_regime_rates {
	double slices, visits, alone;
};

struct ll_regime_tried {
	uint64_t id, from_completed, from_visited_ns,
	    drained_at;            /* drained_at: the value of `completed` when the queued launches have ended */
	double done[2], visited_s; /* launches by slices and by visits; time visited */
};

/* The last result for a mix of jobs. */
struct ll_regime_mix {
	uint64_t number;           /* of the mix; 0: this entry is empty */
	uint64_t used_ns, next_ns; /* when the mix was last there; when its next measurement is due */
	unsigned tries;
	bool gives_visits;
	enum ll_regime_why why;
	double gain;
};

/* All 0 at first. The caller reads the fields above `private`. */
struct ll_regime {
	bool gives_visits;
	enum ll_regime_why why;
	double gain;     /* of the last measurement: of the sum of w log(progress), for each weight of 1 */
	uint64_t due_ns; /* when to step again; UINT64_MAX: when something changes */
	bool is_drained; /* at this step the launches queued before a block of visits have ended: all jobs begin even */
	unsigned moves;  /* of this step: enum ll_regime_move. 0: no later step depends on this one */

	/* private */
	struct ll_regime_mix mixes[LL_REGIME_MIXES];
	struct ll_regime_mix *mix;    /* the present one; NULL: it is not known yet */
	uint64_t new_mix, new_mix_ns; /* a mix that is not known yet, and since when it is there */
	int64_t credit_ns;
	uint64_t credit_at_ns;
	bool is_trying, was_visits;
	unsigned block;                             /* of four, or of eight */
	uint64_t block_ns, drained_ns, measured_ns; /* since when; 0: not yet */
	double seconds[2];
	size_t count;
	struct ll_regime_tried jobs[LL_REGIME_JOBS];
};

/* is_asked: whether the user asked for shares that slices do not give: weights or numbers of processes differ.
 * has_reason: whether there is any reason for visits. */
bool ll_regime_is_asked(const struct ll_regime_job *jobs, size_t count);
bool ll_regime_has_reason(const struct ll_regime_job *jobs, size_t count);

/* Decides how the card is shared from now on, and sets gives_visits. Call it at due_ns, and when jobs come, go or
 * change.
 */
void ll_regime_step(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns);

/* Returns the speeds of the job with that index in the last measurement. Call it after a step with
 * LL_REGIME_MOVE_VERDICT. */
struct ll_regime_rates ll_regime_rates_of(const struct ll_regime *regime, size_t index);

#endif
