/*
 * regime.h - how a card is shared: whether all gates are open and the card's own time slices serve all (slices), or one
 * job is visited after the other (visits.h).
 *
 * Slices are the rule. They lose nothing where programs launch ahead. Visits are better where a program waits for each
 * of its launches: slices serve such a program one kernel at a time, and each costs two switches. And only visits know
 * weights: slices give every process with work the same time. But what a program shows by itself does not tell which
 * of the two serves a mix of programs (doc/share.md). So it is measured on the mix. If there is a reason to think of
 * visits (ll_regime_has_reason) for LL_REGIME_SETTLE_NS, the card is shared in both ways in turn, in four blocks: as it
 * is now, the other way twice, and as it is now. What counts is each job's progress: launches that the card has
 * completed, in one way over the other, so that units cancel. Visits are kept only if they pay:
 *
 *   - the sum of w log(progress) gains LL_REGIME_GAIN. If it gains less, but LL_REGIME_GAIN_LONG, four more blocks are
 *     measured, and that is enough if all eight say so. Or somebody asked for shares, by weights or by fewer processes:
 *     and a job that has less than it is owed by slices has more by visits. It is owed its share of its speed alone,
 *     which is its launches over the time in which it is visited;
 *   - and nobody has less than LL_REGIME_LEAST of what it had by slices, or of what it is owed, whichever is less.
 *
 * The measurement is made again after 10, 30, 90 and 300 s, and soon after the mix has changed. What was found is kept
 * for some mixes, because jobs come and go. What measuring costs is bounded: a credit grows with time.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_CONTROL_SHARE_REGIME_H
#define LOADLINE_CONTROL_SHARE_REGIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reason, and a mix of jobs, counts when it has lasted for so long. */
#define LL_REGIME_SETTLE_NS UINT64_C(500000000)
/* A block is measured for at least so long, and until each job has completed LL_REGIME_ENOUGH launches, or for at most
 * so long. Where somebody asked for shares it is long beside what visits make up for (LL_VISIT_LAG_NS). */
#define LL_REGIME_BLOCK_NS UINT64_C(150000000)
#define LL_REGIME_BLOCK_MOST_NS UINT64_C(300000000)
#define LL_REGIME_BLOCK_ASKED_NS UINT64_C(400000000)
enum { LL_REGIME_ENOUGH = 20 };
/* Before a block of visits is measured, what was queued before must be done; meanwhile slices serve it, and nobody
 * loses anything. If that takes longer than the first of these times, the measurement is given up; than the second,
 * where somebody asked for shares. */
#define LL_REGIME_DRAIN_NS UINT64_C(5000000000)
#define LL_REGIME_DRAIN_ASKED_NS UINT64_C(30000000000)
/* What is given away before a block is measured. It is longer where somebody asked for shares: visits reach them in
 * some time. */
#define LL_REGIME_SKIP_NS UINT64_C(30000000)
#define LL_REGIME_SKIP_ASKED_NS UINT64_C(100000000)
/* Measurements take 2 % of the time at most, and this much at once. One is begun if half of that is there; the first of
 * a mix in which somebody asked for shares, in any case. */
#define LL_REGIME_CREDIT_NS INT64_C(2400000000)
enum { LL_REGIME_CREDIT_PART = 50 };

#define LL_REGIME_GAIN 0.18       /* 20 % for each job */
#define LL_REGIME_GAIN_LONG 0.095 /* 10 %, after twice as many blocks */
#define LL_REGIME_MORE 1.07       /* what counts as more than by slices, and as less than is owed */
#define LL_REGIME_LEAST 0.93

enum {
	LL_REGIME_JOBS = 64, /* With more jobs nothing is measured: visits if there is a reason for them. */
	LL_REGIME_MIXES = 8, /* of which the verdict is kept */
};

/* A job that has wanted the card of late. */
struct ll_regime_job {
	uint64_t id;
	uint64_t completed;       /* launches that the card has finished, since any time */
	uint64_t queued_launches; /* launches that it has made beyond these */
	uint64_t visited_ns;      /* how long it was visited, since any time */
	unsigned weight_permille; /* 1000: weight 1 */
	unsigned processes;
	bool waits; /* one of its processes waits for each of its launches, or for less work than a time slice */
};

/* Why a card is shared as it is. */
enum ll_regime_why {
	LL_REGIME_NO_REASON, /* nobody waits for each launch or for short work, and all have the same weight and number
				of processes */
	LL_REGIME_NOT_MEASURED,
	LL_REGIME_MEASURES,
	LL_REGIME_PAYS,     /* visits were measured to pay */
	LL_REGIME_PAYS_NOT, /* they were measured not to */
	LL_REGIME_TOO_DEEP, /* what jobs had queued took too long: nothing could be measured */
	LL_REGIME_TOO_MANY, /* jobs */
};

/* What a step did. One step may do several of these. */
enum ll_regime_move {
	LL_REGIME_MOVE_MIX = 1,       /* another mix is there, or it has been there for long enough to be known */
	LL_REGIME_MOVE_BEGINS = 2,    /* a measurement begins, with its first block */
	LL_REGIME_MOVE_DRAINED = 4,   /* what was queued before the block is done */
	LL_REGIME_MOVE_MEASURES = 8,  /* progress in the block counts from here on */
	LL_REGIME_MOVE_BLOCK = 16,    /* a block has ended */
	LL_REGIME_MOVE_VERDICT = 32,  /* the measurement has ended, and says what is better */
	LL_REGIME_MOVE_GIVES_UP = 64, /* the measurement has ended without a result */
	LL_REGIME_MOVE_OUTPUT = 128,  /* gives_visits, why or gain has changed */
};

/* What a job did in a measurement, in launches a second. alone: while it was visited; 0: it was not. */
struct ll_regime_rates {
	double slices, visits, alone;
};

struct ll_regime_tried {
	uint64_t id, from_completed, from_visited_ns,
	    drained_at;            /* drained_at: completed, when what was queued is done */
	double done[2], visited_s; /* launches by slices and by visits; time visited */
};

/* What was found for a mix of jobs. */
struct ll_regime_mix {
	uint64_t number;           /* of the mix; 0: this entry is empty */
	uint64_t used_ns, next_ns; /* when it was there last; when it is to be measured next */
	unsigned tries;
	bool gives_visits;
	enum ll_regime_why why;
	double gain;
};

/* All 0 at first. The caller reads what follows. */
struct ll_regime {
	bool gives_visits;
	enum ll_regime_why why;
	double gain;     /* of the last measurement: of the sum of w log(progress), for each weight of 1 */
	uint64_t due_ns; /* when to step again; UINT64_MAX: when something changes */
	bool is_drained; /* with this step what was queued before a block of visits is done: nobody is owed anything */
	unsigned moves; /* of this step: enum ll_regime_move. 0: it changed nothing that a later step depends on, so the
			   same later steps without this one decide the same */

	/* private */
	struct ll_regime_mix mixes[LL_REGIME_MIXES];
	struct ll_regime_mix *mix;    /* the present one; NULL: it is not known yet */
	uint64_t new_mix, new_mix_ns; /* a mix that is not known, and since when it is there */
	int64_t credit_ns;
	uint64_t credit_at_ns;
	bool is_trying, was_visits;
	unsigned block;                             /* of four, or of eight */
	uint64_t block_ns, drained_ns, measured_ns; /* since when; 0: not yet */
	double seconds[2];
	size_t count;
	struct ll_regime_tried jobs[LL_REGIME_JOBS];
};

/* Whether somebody asked for shares that slices do not give: weights, or numbers of processes, differ. And whether
 * there is any reason for visits. */
bool ll_regime_is_asked(const struct ll_regime_job *jobs, size_t count);
bool ll_regime_has_reason(const struct ll_regime_job *jobs, size_t count);

/* Decides how the card is shared from now on: gives_visits. To be called at due_ns, and when jobs come, go or change.
 */
void ll_regime_step(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns);

/* Of the job that was index in the last measurement. To be called after a step with LL_REGIME_MOVE_VERDICT. */
struct ll_regime_rates ll_regime_rates(const struct ll_regime *regime, size_t index);

#endif
