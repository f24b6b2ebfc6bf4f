/*
 * level_loop.h - the closed loop for the metrics whose level is not the duty itself: those of GPM, and power.
 *
 * The actuator is a duty, 0..1. The caller chooses the kernel and the number of SMs. The plant is nearly linear, level
 * = floor + gain * duty, and the meter lags. Gain and floor are known only roughly. After a start, or a step of the
 * target, the loop
 *   1. sets the duty that the largest likely gain asks for,
 *   2. waits until the meter is at rest, and learns the gain,
 *   3. jumps most of the rest of the way, at most twice,
 *   4. holds the mean by a PI controller, whose zero cancels the lag.
 * If the gain is half to twice the guess, it overshoots by less than 5 % of the step. A clamped duty does not wind up.
 *
 * Levels are in the metric's unit: a ratio, or watts. Times are ns of one clock. The struct has no pointers and is in
 * the caller's memory.
 */
#ifndef LOADLINE_RULES_HOLD_LEVEL_LOOP_H
#define LOADLINE_RULES_HOLD_LEVEL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct ll_level_loop_config {
	double gain;       /* guess: level at duty 1 minus level at duty 0; over 0, wrong by a factor of 2 at most */
	double floor;      /* guess: level at duty 0; used for the first duty and for steps, not at rest */
	double lag_s;      /* first-order lag of the reading, or half the length of its average; 0: none */
	double interval_s; /* time between readings, also the window of one (GPM: 0.1 or more) */
	double settle_s;   /* how long after a change of duty a reading still shows the old level */
	double max_duty;   /* the largest duty, usually 1 */
	double max_slew_per_s;      /* the largest change of duty in a second; 0: no limit */
	double tolerance;           /* a level further from the target misses it; in the metric's unit */
	uint64_t saturate_after_ns; /* how long the duty is at a limit before the state says so; 0: 5 s */
};

enum ll_level_state {
	LL_LEVEL_TRACKING,
	LL_LEVEL_TARGET_TOO_HIGH, /* duty is at its maximum, and the level below the target */
	LL_LEVEL_TARGET_TOO_LOW,  /* duty is 0, and the level above: 100 W on a card that draws 121 W with a context */
};

struct ll_level_loop {
	struct ll_level_loop_config config;
	double target;
	double reference;        /* the target, lagged like the readings */
	double duty;             /* the caller applies it */
	double integral;         /* the duty without the proportional part */
	double gain;             /* first the largest likely gain, then the learned one */
	bool has_learned;        /* gain is learned */
	double mean_level;       /* slow average of the readings; NAN: none yet */
	uint64_t last_ns;        /* the last reading that was used; 0: none since resume */
	uint64_t blind_until_ns; /* readings before this are ignored */
	bool has_stepped;        /* the target has jumped since the last reading */
	unsigned jumps_left;     /* how often the duty may still jump, from a reading at rest */
	uint64_t limit_since_ns; /* since when the duty is at a limit; 0: it is not */
	enum ll_level_state state;
};

/* Returns a config for GPM's metrics, read every interval_s. gain: the level at duty 1, such as blocks / SMs. */
struct ll_level_loop_config ll_level_loop_gpm_config(double gain, double interval_s);

/* Returns a config for NVML's power, an average of 1 s that is read every interval_s. floor_w: with an open context and
 * no load. ceiling_w: at duty 1. */
struct ll_level_loop_config ll_level_loop_power_config(double floor_w, double ceiling_w, double interval_s);

/* Afterwards loop->duty is a first duty that does not overshoot if the gain is at most twice the guess. */
void ll_level_loop_init(struct ll_level_loop *loop, const struct ll_level_loop_config *config, double target);

/*
 * Sets a new target and returns the duty. Call it as often as a curve changes. The duty moves at once, by the learned
 * or guessed gain, and the loop expects the readings to follow with their lag.
 */
double ll_level_loop_set_target(struct ll_level_loop *loop, double target);

/*
 * Says that kernels run from now_ns on, with loop->duty, for the first time or after a pause. Readings are ignored for
 * settle_s, because they still show the old level.
 */
void ll_level_loop_resume(struct ll_level_loop *loop, uint64_t now_ns);

/* Says that from now_ns on the same duty raises the level `factor` times as much, because the caller has changed the
 * number of SMs. The duty changes so that the level stays about the same, and the loop learns the gain anew. */
void ll_level_loop_rescale(struct ll_level_loop *loop, uint64_t now_ns, double factor);

/*
 * Takes one reading, of a window that ended at now_ns, and returns the duty to use from now on. Kernels must have run
 * for the whole window, without foreign work. A reading that is NAN, or not newer than the last, changes nothing.
 */
double ll_level_loop_update(struct ll_level_loop *loop, uint64_t now_ns, double level);

/* Whether the target is in reach. If it is not and ret_reach is not NULL, *ret_reach is the average level reached. */
enum ll_level_state ll_level_loop_state(const struct ll_level_loop *loop, double *ret_reach);

#endif
