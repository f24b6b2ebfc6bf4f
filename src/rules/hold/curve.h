/*
 * curve.h - a target that changes with time.
 *
 *   sine:20-80@60s      starts half way between and rises first; one full wave takes 60 s
 *   square:20-80@60s    30 s at 20 %, then 30 s at 80 %
 *   sawtooth:20-80@60s  rises evenly from 20 to 80 % in 60 s, then falls back at once
 *   replay:FILE.csv     recorded targets: rows "time_s,target", target in percent
 *
 * Levels are 1..99 %; each may have a percent sign. The first is below the second, and the period is over 0. Inside the
 * program a level is a ratio, 0.01..0.99, and time is seconds since the hold's first kernel.
 *
 * This module reads no file. The caller finds a replay's path with ll_curve_replay_path, reads the file and passes its
 * text to ll_curve_parse_replay. Only a replay owns memory, its points, which ll_curve_fini frees.
 */
#ifndef LOADLINE_RULES_HOLD_CURVE_H
#define LOADLINE_RULES_HOLD_CURVE_H

#include <stdbool.h>
#include <stddef.h>

struct ll_err;

enum ll_curve_kind {
	LL_CURVE_CONSTANT,
	LL_CURVE_SINE,
	LL_CURVE_SQUARE,
	LL_CURVE_SAWTOOTH,
	LL_CURVE_REPLAY,
};

struct ll_curve_point {
	double time_s;
	double ratio;
};

struct ll_curve {
	enum ll_curve_kind kind;
	double low;  /* ratio; a constant has low == high */
	double high; /* ratio. A replay has its lowest and highest target here. */
	double period_s;
	struct ll_curve_point *points; /* replay only */
	size_t point_count;
};

/* The target between two times. */
struct ll_curve_window {
	double mean;         /* exact time average */
	double largest_step; /* the largest sudden change in (from, to], as a ratio; 0: none */
};

/* Makes a constant target. ratio is not checked, because fill mode and --target have their own ranges. */
void ll_curve_init_constant(struct ll_curve *curve, double ratio);

/*
 * Parses sine, square and sawtooth. -EINVAL with "'text': why": the name is unknown (err lists the known ones), a level
 * is not in 1..99 %, the first is not below the second, or there is no period. "replay:..." is refused too; see
 * ll_curve_replay_path.
 */
int ll_curve_parse(const char *text, struct ll_curve *ret_curve, struct ll_err *err);

/* Returns the FILE of "replay:FILE", a pointer into text; NULL: text is another curve. */
const char *ll_curve_replay_path(const char *text);

/*
 * Parses a recording of length bytes, which need no final zero. name is for messages only. A line is "time_s,target" in
 * seconds and percent (1..99), a comment that begins with '#', or blank. The first other line may be the header
 * "time_s,target". Blanks around fields and CRLF are accepted. Times start at 0 or later and strictly increase.
 *
 * A target holds until the next row's time; there is no interpolation. The first row's target also holds before its
 * time, the last row's for ever after it. -EINVAL: "name:line: why", also for a file without rows. -ENOMEM. On success
 * the caller frees *ret_curve with ll_curve_fini.
 */
int ll_curve_parse_replay(const char *name, const char *csv, size_t length, struct ll_curve *ret_curve,
			  struct ll_err *err);

/* Frees a replay's points. Any curve, a zeroed one and NULL are fine. */
void ll_curve_fini(struct ll_curve *curve);

/* Returns the target at a time, a ratio. Negative times count as 0. At a sudden change the new value counts. */
double ll_curve_at(const struct ll_curve *curve, double seconds);

/* Describes the target over from_s..to_s (from_s <= to_s). Negative times count as 0. An empty window gives the value
 * at from_s. */
void ll_curve_find_window(const struct ll_curve *curve, double from_s, double to_s, struct ll_curve_window *ret_window);

/* Returns "sine", "replay" and so on; never NULL. */
const char *ll_curve_kind_name(enum ll_curve_kind kind);

#endif
