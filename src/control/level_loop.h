/*
 * level_loop.h - the closed loop of the metrics that are not a duty cycle: those of GPM, and power.
 *
 * The actuator is a duty, 0..1; how many SMs and which kernel is the caller's choice, made from the target. The
 * plant is about linear, level = floor + gain * duty, seen through a meter that lags; gain and floor are known only
 * roughly. After a start or a step of the target the loop goes carefully where the largest likely gain says, waits
 * until the meter is at rest, learns the gain, jumps most of the rest of the way (twice at most), and then a PI
 * controller, whose zero cancels the lag, holds the mean. With a gain of half to twice the guess it overshoots by less
 * than 5 % of the step. A clamped duty does not wind up.
 *
 * Levels are in the metric's unit: a ratio, or watts. Times are one clock's ns. Caller's memory, no pointers.
 */
#ifndef LOADLINE_CONTROL_LEVEL_LOOP_H
#define LOADLINE_CONTROL_LEVEL_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct ll_level_loop_config {
	double gain;                /* guess: level at duty 1 minus level at duty 0; > 0, right within a factor of 2 */
	double floor;               /* guess: level at duty 0; used for the first duty and for steps, not at rest */
	double lag_s;               /* first-order lag of the reading, or half the length of its average; 0: none */
	double interval_s;          /* time between readings, also the window of one (GPM: 0.1 or more) */
	double settle_s;            /* how long after a change of duty a reading still shows what was before */
	double max_duty;            /* what the pacer can do, usually 1 */
	double max_slew_per_s;      /* largest change of duty in a second; 0: free */
	double tolerance;           /* how far from the target counts as missed, in the metric's unit */
	uint64_t saturate_after_ns; /* how long a limit must be pressed on before it is reported; 0: 5 s */
};

enum ll_level_state {
	LL_LEVEL_TRACKING,
	LL_LEVEL_TARGET_TOO_HIGH, /* duty at its maximum and still below: "power target 700 W is above ... (about 415
				     W)" */
	LL_LEVEL_TARGET_TOO_LOW,  /* duty 0 and still above, like 100 W on a card that idles at 121 W with a context */
};

struct ll_level_loop {
	struct ll_level_loop_config config;
	double target;
	double reference;  /* the target as the lag lets it be seen */
	double duty;       /* what the caller applies */
	double integral;   /* duty without the proportional part */
	double gain;       /* the guess, made safe, then learned */
	bool has_learned;  /* the gain */
	double mean_level; /* slow average of the readings; NAN: none yet */
	uint64_t last_ns;  /* last reading taken; 0: none since resume */
	uint64_t blind_until_ns;
	bool has_stepped;        /* the target jumped since the last reading */
	unsigned jumps_left;     /* duty may still jump to the target, from a reading at rest */
	uint64_t limit_since_ns; /* 0: no limit is pressed on */
	enum ll_level_state state;
};

/* Sane values for GPM's metrics, read every interval_s; gain is the level at duty 1 (blocks / SMs, ...). */
struct ll_level_loop_config ll_level_loop_gpm_config(double gain, double interval_s);

/* Sane values for NVML power: 1 s average, read every interval_s; floor_w with an open context and no load. */
struct ll_level_loop_config ll_level_loop_power_config(double floor_w, double ceiling_w, double interval_s);

/* loop->duty is then a first duty that cannot overshoot while the guess is right within a factor of 2. */
void ll_level_loop_init(struct ll_level_loop *loop, const struct ll_level_loop_config *config, double target);

/*
 * A new target; call it as often as a curve changes. The duty moves at once, by what the gain, learned or guessed,
 * says, and the loop expects the readings to follow with their lag. Returns the duty.
 */
double ll_level_loop_set_target(struct ll_level_loop *loop, double target);

/*
 * Holding begins, or goes on after a pause, at now_ns, with loop->duty. Readings are ignored for settle_s, until they
 * no longer show what was before.
 */
void ll_level_loop_resume(struct ll_level_loop *loop, uint64_t now_ns);

/* From now_ns on the same duty does `factor` times as much above the floor: the caller has chosen other SMs. The level
 * stays about where it is, by another duty, and the rest is found anew as after a start. */
void ll_level_loop_rescale(struct ll_level_loop *loop, uint64_t now_ns, double factor);

/*
 * One reading of a window that ended at now_ns, wholly in holding; returns the duty to use from now on. A reading that
 * is NAN or not newer than the last changes nothing. Do not call while paused, nor for disturbed windows.
 */
double ll_level_loop_update(struct ll_level_loop *loop, uint64_t now_ns, double level);

/* Whether the target is out of reach; *ret_reach (may be NULL) is then the level that is reached, averaged. */
enum ll_level_state ll_level_loop_state(const struct ll_level_loop *loop, double *ret_reach);

#endif
