/*
 * util_trim.h - the util metric: feed-forward plus a slow trim, so that the mean of NVML's readings is the target.
 *
 * On a card a duty cycle reads as itself to about half a point (doc/facts.md), so the command is simply
 *
 *     command duty = target + trim,   |trim| <= 3 points,   0 <= command <= 1
 *
 * and only the rest is closed loop. The trim is the sum of two averages, which need no tuning and cannot be
 * upset by the age of a reading, because each compares quantities of one and the same window:
 *   bias   = command - own busy share   what pacing loses (launch gaps, host jitter); exact, so learned fast
 *   offset = own busy share - reading   what NVML counts otherwise, with its rounding to whole percent; learned slowly
 * Where the own busy share is unknown, offset alone takes both. Each average begins with large steps
 * (1/2, 1/3, ...) and ends with small ones (3 % and 1.5 % a sample): it settles in seconds, yet at rest
 * moves by less than +-0.2 points, also where the target sits between two integers.
 *
 * Only whole 200 ms windows that lay in own holding at a steady target, undisturbed, teach it anything: the module
 * keeps the last commands itself and finds out which windows those are. A changed target keeps the trim. The caller's
 * memory, no pointers: copy or zero it at will. Times are one clock's ns (ll_now_ns).
 */
#ifndef LOADLINE_CONTROL_UTIL_TRIM_H
#define LOADLINE_CONTROL_UTIL_TRIM_H

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
	uint32_t segment_count; /* ever begun; the last LL_UTIL_TRIM_SEGMENTS are kept */
	struct ll_util_trim_segment segments[LL_UTIL_TRIM_SEGMENTS];
};

struct ll_util_trim_window {
	uint64_t start_ns;
	uint64_t end_ns;
	unsigned percent;      /* NVML's reading */
	double own_busy_ratio; /* share of the window in which own kernels ran; NAN: unknown */
	bool is_disturbed;     /* foreign work, or the caller cannot tell */
};

enum ll_util_trim_use {
	LL_UTIL_TRIM_USED,
	LL_UTIL_TRIM_NOT_HOLDING, /* part of the window was not held, or lies before the kept history */
	LL_UTIL_TRIM_MIXED,       /* the target moved by more than a point in it, or shortly before */
	LL_UTIL_TRIM_DISTURBED,   /* is_disturbed, or the reading is over 6 points away from the own busy share */
};

void ll_util_trim_init(struct ll_util_trim *trim);

/*
 * The duty to use from now_ns on for this target (both ratios), and remembers it. Call before each period of
 * the pacer or at each change; the first call after a pause begins holding.
 */
double ll_util_trim_command(struct ll_util_trim *trim, uint64_t now_ns, double target);

/* From now_ns on nothing is launched, until the next ll_util_trim_command. */
void ll_util_trim_pause(struct ll_util_trim *trim, uint64_t now_ns);

/* Takes one complete NVML sample, in order of time; says whether it was used and if not, why. */
enum ll_util_trim_use ll_util_trim_add(struct ll_util_trim *trim, const struct ll_util_trim_window *window);

/* The present trim, a ratio. */
double ll_util_trim_value(const struct ll_util_trim *trim);

#endif
