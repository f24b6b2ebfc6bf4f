/*
 * lever.h - for which part of the time lower classes are held while a higher class has work.
 *
 * Queued launches cannot be called back. So the queue of a lower class is kept short while a higher class is on the
 * card. With short queues alone, the higher class would still share the card by time slices. So the jobs of lower
 * classes are also held on the card for a part of the time in which the higher class has work. Time is cut into periods
 * of some ms. In the first part of each period only the higher class runs. In the rest the time slices of the card
 * serve all jobs. The part is the smallest with which no job of the higher class is slowed down by more than its
 * `slowdown`:
 *
 *   - The speed of a job is its completed launches divided by the time in which it has work. Its speed while the lower
 *     classes are held is taken for its speed alone. So each period measures both speeds, and no extra trial is needed.
 *   - If holding for a quarter of the time gains less than 3 % of speed, the part is LL_LEVER_LEAST.
 *   - While the higher class has work for less than LL_LEVER_SPARSE of the time, the part is 1. The lower classes then
 *     lose less than LL_LEVER_SPARSE of the card, and short requests of the higher class are not delayed.
 *   - Several processes leave the card one after the other, which takes some ms. A phase begins when all have done what
 *     was decided, and is the longer the longer that took.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_SHARE_LEVER_H
#define LOADLINE_RULES_SHARE_LEVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LL_LEVER_PERIOD_NS UINT64_C(16000000)
/* The least length of each of the two parts of a period. Launches queued before a part begins are done within this
 * time, so the launches of the part can be told from them. */
#define LL_LEVER_SIDE_NS UINT64_C(6000000)
#define LL_LEVER_LEAST 0.02
#define LL_LEVER_MOST 0.98
#define LL_LEVER_SPARSE 0.10
/* What was decided counts as in force after this, whatever the caller says: a process may be unable to obey. */
#define LL_LEVER_PENDING_MOST_NS UINT64_C(30000000)
/* How often it is asked whether it is in force. */
#define LL_LEVER_PENDING_LOOK_NS UINT64_C(300000)
/* The lower classes stay held for this long after the last work of the higher class, because its host may compute
 * between two launches. */
#define LL_LEVER_HOLD_AFTER_NS UINT64_C(1000000)
/* A job without work for this long is taken to begin other work. The time between counts for neither speed. */
#define LL_LEVER_GAP_NS UINT64_C(5000000)
/* A slowdown within this distance of the wanted one changes nothing. */
#define LL_LEVER_DEAD_BAND 0.05

enum ll_lever_way { LL_LEVER_OPEN, LL_LEVER_HELD };

/* Measurements of one job of the higher class. All 0 at first; lives as long as the job is on the card. */
struct ll_lever_gauge {
	double launches[2],
	    seconds[2]; /* recent, for LL_LEVER_OPEN and LL_LEVER_HELD: completed launches, and seconds with work */
	uint64_t seen_completed, seen_ns, worked_ns;
	bool had_work;
	/* recent too, but with all work beside lower classes: the time while the phases change as well */
	double all_launches, all_seconds[2];
};

struct ll_lever_job {
	struct ll_lever_gauge *gauge;
	uint64_t id;                /* for logs only: no decision depends on it */
	uint64_t completed;         /* launches, counted from any start */
	unsigned slowdown_permille; /* accepted; 1000: none */
	bool has_work;
};

/* What a step did about the part. */
enum ll_lever_move {
	LL_LEVER_MOVE_NONE,   /* nothing: the part is forced, or its next check is not due */
	LL_LEVER_MOVE_SPARSE, /* the higher class seldom has work: the part is 1 */
	LL_LEVER_MOVE_DENSE,  /* it has work more often, and the part was 1 or 0: now it is 0.5, until both speeds are
				 measured */
	LL_LEVER_MOVE_UNSEEN, /* the part was checked, and stays: one of the two speeds has too few launches */
	LL_LEVER_MOVE_FOUND,  /* both speeds are measured for the first time: the part is set to what is needed */
	LL_LEVER_MOVE_MENDED, /* the part moves towards what is needed */
	LL_LEVER_MOVE_STAYS,  /* the part was checked, and stays: it is what is needed */
	LL_LEVER_MOVE_SLICES, /* no move of the lever: the lower classes' time slices change (class_slices.h) */
};

/*
 * The result of a step, and its inputs without the launches, seconds and slowdown_permille of its jobs. With these
 * inputs the step can be repeated: a lever that is all 0 but for part = from_part, busy, weighed_s and is_known =
 * was_known, and jobs that are all 0 but for those three, make the same move to the same part.
 */
struct ll_lever_choice {
	enum ll_lever_move move;
	double part; /* the result */
	double from_part, busy, weighed_s;
	bool was_known;
	unsigned slice_us; /* of LL_LEVER_MOVE_SLICES: the new one */
};

/* All 0 at first. The caller reads the fields above `private`, and may write is_forced, is_pending and part. */
struct ll_lever {
	bool is_forced;                /* no step changes the part */
	bool is_pending;               /* what the last step decided is not in force yet: its phase has not begun */
	bool is_held;                  /* the lower classes are held now */
	double part;                   /* of the time in which the higher class has work */
	double busy;                   /* recent: the fraction of all time in which the higher class has work */
	uint64_t due_ns;               /* when to step again; UINT64_MAX: when something changes */
	struct ll_lever_choice choice; /* of the last step */

	/* private */
	bool is_known; /* the part was found; later steps correct it */
	/* of the period; in LL_LEVER_HELD the lower classes are held only while the higher class has work */
	enum ll_lever_way phase;
	double left_ns;     /* rest of the phase, counted in time with work */
	uint64_t phase_ns;  /* start of the phase: when what was decided came into force */
	uint64_t turned_ns; /* when the phase was decided */
	bool is_waiting;    /* the phase has not begun */
	double pending_ns;  /* recent: from the one to the other */
	uint64_t stepped_ns, worked_ns;
	bool had_work;
	double weighed_s; /* seconds with work since the last check of the part */
};

/*
 * Decides whether the lower classes are held from now on. jobs: the jobs of the higher class on the card. has_beneath:
 * a job of a lower class wants the card, or did recently. Call it at due_ns, and when a job begins or ends to have
 * work.
 */
void ll_lever_step(struct ll_lever *lever, const struct ll_lever_job *jobs, size_t count, bool has_beneath,
		   uint64_t now_ns);

/* Returns the job's speed while the lower classes run, of its speed while they are held; 0: not known. */
double ll_lever_open_speed(const struct ll_lever_gauge *gauge);

/* Forgets what was measured beside the lower classes: they are to have another slice. */
void ll_lever_forget_open(struct ll_lever_gauge *gauge);

/* Returns what the job loses while the phases change, of its speed while the lower classes are held; 0: not known. */
double ll_lever_loss(const struct ll_lever_gauge *gauge);

/* Returns the measured slowdown of the job: its speed alone divided by its speed now; 0: not known. */
double ll_lever_slowdown(const struct ll_lever *lever, const struct ll_lever_gauge *gauge);

#endif
