/*
 * util_trim.h - the util metric: feed-forward plus a slow trim, so that the mean of NVML's readings is the target.
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
 * The struct has no pointers and is in the caller's memory; it may be copied and zeroed. Times are ns (ll_now_ns).
 */
#ifndef LOADLINE_RULES_HOLD_UTIL_TRIM_H
#define LOADLINE_RULES_HOLD_UTIL_TRIM_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_UTIL_TRIM_SEGMENTS = 128 };

#define LL_UTIL_TRIM_MAX 0.03

struct ll_util_trim_segment {
	uint64_t start_ns;
	double target;
	double command;
	bool is_holding;
};

struct ll_util_trim {
	double bias;
	double offset;
	uint32_t bias_count;
	uint32_t offset_count;
	uint32_t segment_count; /* so far; the last LL_UTIL_TRIM_SEGMENTS are kept */
	struct ll_util_trim_segment segments[LL_UTIL_TRIM_SEGMENTS];
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

void ll_util_trim_init(struct ll_util_trim *trim);

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

#endif
