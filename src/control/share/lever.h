/*
 * lever.h - how long those beneath a higher class are held while it has work.
 *
 * What a lower class has queued cannot be called back, so its queue is short while a higher class is on the card. That
 * alone leaves the higher class to the card's time slices. So the lower ones are also held on the card, for a part of
 * the time in which the higher class has work: of each period of some ms the first part is for the higher class alone,
 * and in the rest the card's slices serve all. The part is as large as it must be for each job of the higher class to
 * be no more than its `slowdown` slower than alone, and no larger:
 *
 *   - A job's speed is the launches that the card has completed for it, over the time in which it has work. Its speed
 *     while the others are held stands for its speed alone. So both speeds come with each period, and nothing is tried
 *     for their sake.
 *   - If holding buys less than 3 % of speed for each quarter of the time, the part is the least.
 *   - While the higher class seldom has work (LL_LEVER_SPARSE of the time), the part is 1: those beneath lose less than
 *     that, and short requests lose nothing.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_CONTROL_SHARE_LEVER_H
#define LOADLINE_CONTROL_SHARE_LEVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LL_LEVER_PERIOD_NS UINT64_C(16000000)
/* Both parts of a period last for so long: what is queued when one begins is done by then, and can be told from it. */
#define LL_LEVER_SIDE_NS UINT64_C(6000000)
#define LL_LEVER_LEAST 0.02
#define LL_LEVER_MOST 0.98
#define LL_LEVER_SPARSE 0.10
/* Those beneath go on when the higher class has had no work for so long: its host computes between launches. */
#define LL_LEVER_HOLD_AFTER_NS UINT64_C(1000000)
/* A job that comes back after so long has begun other work. The time between counts neither way. */
#define LL_LEVER_GAP_NS UINT64_C(5000000)
/* A slowdown this close to what is wanted is what is wanted. */
#define LL_LEVER_DEAD_BAND 0.05

enum ll_lever_way { LL_LEVER_OPEN, LL_LEVER_HELD };

/* What was seen of one job of the higher class. All 0 at first; it lives as long as the job is on the card. */
struct ll_lever_gauge {
	double launches[2], seconds[2]; /* by way: completed, and time with work, of late */
	uint64_t seen_completed, seen_ns, worked_ns;
	bool had_work;
};

struct ll_lever_job {
	struct ll_lever_gauge *gauge;
	uint64_t id;                /* for who logs the step: nothing is decided by it */
	uint64_t completed;         /* launches, since any time */
	unsigned slowdown_permille; /* accepted; 1000: none */
	bool has_work;
};

/* What a step did about the part. */
enum ll_lever_move {
	LL_LEVER_MOVE_NONE,   /* nothing: the part is forced, or it is not time to look at it */
	LL_LEVER_MOVE_SPARSE, /* the higher class seldom has work: the part is 1 */
	LL_LEVER_MOVE_DENSE,  /* it is not seldom, and the part was 1 or 0: it is a half, until both speeds are seen */
	LL_LEVER_MOVE_UNSEEN, /* the part was looked at, and stays: too little was seen of one of the ways */
	LL_LEVER_MOVE_FOUND,  /* both ways are seen for the first time: the part is what is needed */
	LL_LEVER_MOVE_MENDED, /* the part goes some of the way to what is needed */
	LL_LEVER_MOVE_STAYS,  /* the part was looked at, and stays: it is what is needed */
};

/*
 * How a step chose the part, and all that it chose from, besides the launches, seconds and slowdown_permille of its
 * jobs. A step of a lever that is 0 but for part = from_part, busy, weighed_s and is_known = was_known, with jobs that
 * are 0 but for these three, makes the same move to the same part.
 */
struct ll_lever_choice {
	enum ll_lever_move move;
	double part; /* that came out */
	double from_part, busy, weighed_s;
	bool was_known;
};

/* All 0 at first. The caller reads what follows, and may write the part if it forces it. */
struct ll_lever {
	bool is_forced;                /* the part stays as it is */
	bool is_held;                  /* those beneath wait now */
	double part;                   /* of the time in which the higher class has work */
	double busy;                   /* the part of all time in which it has work, of late */
	uint64_t due_ns;               /* when to step again; UINT64_MAX: when something changes */
	struct ll_lever_choice choice; /* of the last step */

	/* private */
	bool is_known;           /* the part was found, and is mended from now on */
	enum ll_lever_way phase; /* of the period; those beneath are held in it only while there is work */
	double left_ns;          /* of that phase, in time with work */
	uint64_t phase_ns;       /* since when it is so */
	uint64_t stepped_ns, worked_ns;
	bool had_work;
	double weighed_s; /* time with work since the part was last looked at */
};

/*
 * Decides whether those beneath are held from now on. jobs: of the higher class that are on the card. has_beneath:
 * others want the card, or did of late. To be called at due_ns, and when a job begins or ends to have work.
 */
void ll_lever_step(struct ll_lever *lever, const struct ll_lever_job *jobs, size_t count, bool has_beneath,
		   uint64_t now_ns);

/* How many times as slow as alone the job is by what was seen; 0: it is not known. */
double ll_lever_slowdown(const struct ll_lever *lever, const struct ll_lever_gauge *gauge);

#endif
