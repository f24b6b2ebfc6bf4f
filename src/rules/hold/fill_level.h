/*
 * fill_level.h - the duty that adds to the load of other programs up to a target (`hold --mode fill`).
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
 * The struct has no pointers and is in the caller's memory. Ratios are 0 to 1. Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_HOLD_FILL_LEVEL_H
#define LOADLINE_RULES_HOLD_FILL_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_FILL_LEVEL_SEGMENTS = 64, LL_FILL_LEVEL_WINDOWS = 8 };

struct ll_fill_level_segment {
	uint64_t start_ns;
	double duty;
};

struct ll_fill_level_reading {
	double foreign_ratio;
	double own_ratio;
	double loss_ratio; /* mean duty of the window - own_ratio */
};

struct ll_fill_level {
	uint32_t segment_count;                                        /* so far; the last are kept */
	struct ll_fill_level_segment segments[LL_FILL_LEVEL_SEGMENTS]; /* a ring: what duty was ordered when */
	uint32_t reading_count;                                        /* of the present mean */
	struct ll_fill_level_reading readings[LL_FILL_LEVEL_WINDOWS];  /* oldest first */
	uint64_t follow_until_ns; /* after a change: until then only the newest reading counts */
};

struct ll_fill_level_window {
	uint64_t start_ns;
	uint64_t end_ns;
	double level;     /* the reading */
	double own_ratio; /* share of the window in which own kernels ran; NAN: unknown, and the window tells nothing */
};

void ll_fill_level_init(struct ll_fill_level *fill);

/* Takes one reading, in order of time, also one of a time without own kernels. */
void ll_fill_level_add(struct ll_fill_level *fill, const struct ll_fill_level_window *window);

/* Returns the duty to order from now_ns on, and remembers it. 0 before the first reading. Call it at every change of
 * the target, and after new readings. */
double ll_fill_level_command(struct ll_fill_level *fill, uint64_t now_ns, double target);

/* Says that nothing is launched from now_ns until the next ll_fill_level_command. */
void ll_fill_level_pause(struct ll_fill_level *fill, uint64_t now_ns);

#endif
