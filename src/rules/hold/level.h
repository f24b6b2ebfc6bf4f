/*
 * level.h - turns a target into kernels: the loops that find the duty, and the account that spends it.
 */
#ifndef LOADLINE_RULES_HOLD_LEVEL_H
#define LOADLINE_RULES_HOLD_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

/* ---- duty ---- */

/*
 * How long the next kernel must be, so that the card is busy for the wanted share of time.
 *
 * This is an account, not a schedule. Time earns busy time at the wanted rate, and every launch spends its length. So a
 * host thread that wakes late loses nothing: the next kernel is longer by what was missed, and NVML's window of 200 ms
 * still has the right sum. Credit over LL_DUTY_CREDIT_MAX_NS is dropped, so that a machine that was suspended does not
 * make up for the whole time.
 *
 * There is one kernel a period of 2 ms, and none is longer: foreign work may have to wait for the kernel that runs,
 * because not every back end's kernels are preempted, and the load notices it at the next kernel.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#define LL_DUTY_PERIOD_NS UINT64_C(2000000)      /* from one launch to the next: 1.3 % of a core (doc/benchmarks.md) */
#define LL_DUTY_KERNEL_MIN_NS UINT64_C(5000)     /* a shorter kernel takes longer to launch than to run */
#define LL_DUTY_KERNEL_MAX_NS UINT64_C(2000000)  /* about the card's own time slice (doc/facts.md) */
#define LL_DUTY_FILL_PERIOD_NS UINT64_C(1000000) /* beside others: half the wait for them, at 2 % of a core */
#define LL_DUTY_CREDIT_MAX_NS UINT64_C(25000000) /* 1/8 of NVML's window */

struct ll_duty {
	double credit_ns;
	uint64_t last_ns;
};

/* Starts an empty account at now_ns. */
void ll_duty_restart(struct ll_duty *duty, uint64_t now_ns);

/*
 * Earns ratio (0..1) of the time since the last call. Spends and returns the length of the kernel to launch now, at
 * most longest_ns. 0: launch none; the credit is kept for the next call. If the credit is enough for more than one
 * kernel, the next call at the same time returns another one.
 */
uint64_t ll_duty_next_ns(struct ll_duty *duty, uint64_t now_ns, double ratio, uint64_t longest_ns);

/* Returns the longest kernel in fill: one and a half times the usual one. So the load catches up, and others do not
 * wait long. */
uint64_t ll_duty_fill_longest_ns(double ratio);

/* Gives back the time that a kernel did not use because it ended early. */
void ll_duty_refund(struct ll_duty *duty, uint64_t unused_ns);

/* ---- past ---- */

/* The commands of the last time, so that a late reading can be judged by what was ordered in its window. */

enum { LL_LEVEL_SEGMENTS = 128 };

struct ll_level_segment {
	uint64_t start_ns;
	double target;  /* of the util metric's trim */
	double command; /* duty */
	bool is_holding;
};

struct ll_level_past {
	uint32_t count;                                      /* so far; the last LL_LEVEL_SEGMENTS are kept */
	struct ll_level_segment segments[LL_LEVEL_SEGMENTS]; /* a ring */
};

/* ---- util trim ---- */

/*
 * The util metric: feed-forward plus a slow trim, so that the mean of NVML's readings is the target.
 *
 * NVML shows a duty cycle as itself to about half a point (doc/facts.md), so the command is
 *
 *     command duty = target + trim,   |trim| <= 3 points,   0 <= command <= 1
 *
 * and only the trim is a closed loop. It is the sum of two averages. They need no tuning, and the age of a reading does
 * not matter, because each compares two quantities of the same window:
 *   bias   = command - own busy share   what pacing loses (launch gaps, host jitter); exact, so learned fast
 *   offset = own busy share - reading   what NVML counts differently, rounded to whole percent; learned slowly
 * If the own busy share is unknown, offset takes both. The first samples of an average have large weights (1/2, 1/3,
 * ...), later ones small weights (3 % and 1.5 %). So it settles in seconds, and at rest moves by less than +-0.2
 * points, even if the target lies between two whole percents.
 *
 * A window of 200 ms counts only if kernels ran for all of it, at a steady target and without foreign work. The module
 * keeps the last commands, to know which windows those are. A new target keeps the trim.
 *
 * The struct begins as zeros. It has no pointers, is in the caller's memory and may be copied. Times are ns
 * (ll_now_ns).
 */
#define LL_UTIL_TRIM_MAX 0.03

struct ll_util_trim {
	double bias;
	double offset;
	uint32_t bias_count;
	uint32_t offset_count;
	struct ll_level_past past;
};

struct ll_util_trim_window {
	uint64_t start_ns;
	uint64_t end_ns;
	unsigned percent;      /* NVML's reading */
	double own_busy_ratio; /* share of the window in which own kernels ran; NAN: unknown */
	bool is_disturbed;     /* foreign work ran, or the caller does not know */
};

enum ll_util_trim_use {
	LL_UTIL_TRIM_USED,
	LL_UTIL_TRIM_NOT_HOLDING, /* kernels did not run for all of the window, or it is older than the kept commands */
	LL_UTIL_TRIM_MIXED,       /* the target moved by more than a point in the window or shortly before */
	LL_UTIL_TRIM_DISTURBED,   /* is_disturbed, or the reading is over 6 points from the own busy share */
};

/*
 * Returns the duty to use from now_ns on for this target (both are ratios), and remembers it. Call it before each
 * period of the pacer or at each change. The first call after a pause says that kernels run again.
 */
double ll_util_trim_command(struct ll_util_trim *trim, uint64_t now_ns, double target);

/* Says that nothing is launched from now_ns until the next ll_util_trim_command. */
void ll_util_trim_pause(struct ll_util_trim *trim, uint64_t now_ns);

/* Takes one NVML sample, in order of time. Returns whether it was used, and if not, why. */
enum ll_util_trim_use ll_util_trim_add(struct ll_util_trim *trim, const struct ll_util_trim_window *window);

/* Returns the present trim, a ratio. */
double ll_util_trim_value(const struct ll_util_trim *trim);

/* ---- fill level ---- */

/*
 * The duty that adds to the load of other programs up to a target (`hold --mode fill`).
 *
 * A reading of utilisation covers one window of 200 ms, and is known some time after the window's end. The own part of
 * a window is known exactly, so one reading tells what the other programs took, whatever the duty was in the meantime:
 *
 *     foreign = reading - own part         of the same window
 *     duty    = target - foreign + loss    loss: what the pacer did not deliver of the duty, also of the same window
 *
 * Nothing is integrated, so a late reading cannot make the level hunt. foreign is the mean of the last four windows,
 * because programs that work in bursts differ from window to window. If foreign was steady and the two newest windows
 * differ from it, a program has come or ended. Then only the newest window counts for 0.8 s, because the program's part
 * also depends on the own part, and both change.
 *
 * A fall of foreign without own kernels is no such change, because the end of own kernels may be its cause: on a card
 * that switches between contexts, a program of many small kernels reads 32 % alone, and 66 % beside the first own
 * kernel (doc/facts.md). If the target lies between the two, no duty gives it. The load then runs as little as
 * possible, or not at all, so that the mean is the target.
 *
 * The struct begins as zeros. It has no pointers and is in the caller's memory. Ratios are 0 to 1. Times are ns of one
 * clock.
 */
enum { LL_FILL_LEVEL_WINDOWS = 8 };

struct ll_fill_level_reading {
	double foreign_ratio;
	double own_ratio;
	double loss_ratio; /* mean duty of the window - own_ratio */
};

struct ll_fill_level {
	struct ll_level_past past;
	uint32_t reading_count;                                       /* of the present mean */
	struct ll_fill_level_reading readings[LL_FILL_LEVEL_WINDOWS]; /* oldest first */
	uint64_t follow_until_ns; /* after a change: until then only the newest reading counts */
};

struct ll_fill_level_window {
	uint64_t start_ns;
	uint64_t end_ns;
	double level;     /* the reading */
	double own_ratio; /* share of the window in which own kernels ran; NAN: unknown, and the window tells nothing */
};

/* Takes one reading, in order of time, also one of a time without own kernels. */
void ll_fill_level_add(struct ll_fill_level *fill, const struct ll_fill_level_window *window);

/* Returns the duty to order from now_ns on, and remembers it. 0 before the first reading. Call it at every change of
 * the target, and after new readings. */
double ll_fill_level_command(struct ll_fill_level *fill, uint64_t now_ns, double target);

/* Says that nothing is launched from now_ns until the next ll_fill_level_command. */
void ll_fill_level_pause(struct ll_fill_level *fill, uint64_t now_ns);

/* ---- level loop ---- */

/*
 * The closed loop for the metrics whose level is not the duty itself: those of GPM, and power.
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
struct ll_level_loop_config {
	double gain;       /* guess: level at duty 1 minus level at duty 0; over 0, wrong by a factor of 2 at most */
	double floor;      /* guess: level at duty 0; used for the first duty and for steps, not at rest */
	double lag_s;      /* first-order lag of the reading, or half the length of its average; 0: none */
	double interval_s; /* time between readings, also the window of one (GPM: 0.1 or more) */
	double settle_s;   /* how long after a change of duty a reading still shows the old level */
	double max_duty;   /* the largest duty, usually 1 */
	double tolerance;  /* a level further from the target misses it; in the metric's unit */
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
