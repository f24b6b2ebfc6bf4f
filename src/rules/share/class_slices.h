/*
 * class_slices.h - which time slice the lower classes have on a card beside a higher class, and for which part of its
 * work they are off the card.
 *
 * A short slice costs the lower classes little if the higher class waits between its launches, and makes the higher one
 * wait for a slice at most (doc/share.md#classes). The first slice is LL_CLASS_SLICE_US. From there on the higher
 * class's speed is measured: while the lower ones share the card, and while they are off it (rules/share/lever.h).
 *
 *   - The lower classes are off for the part of that work with which no job of the higher class is slower than its
 *     `slowdown` allows. It is LL_LEVER_LEAST at least, which measures the speed without them.
 *   - They have the slice with which most is left to them: of the rest of the time, what changes of the context do not
 *     take. A longer slice leaves more of it, and may need a larger part. Twice the slice is tried, and half of it, as
 *     long as that gains. What does not is undone, and not tried again, until much less is left than was found.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_SHARE_CLASS_SLICES_H
#define LOADLINE_RULES_SHARE_CLASS_SLICES_H

#include "rules/share/lever.h"

#define LL_CLASS_SLICE_US 500u
#define LL_CLASS_SLICE_LEAST_US 125u
#define LL_CLASS_SLICE_MOST_US 2000u
/* The slice of a higher class's only job. It loses less to changes of context the longer its own slice is. */
#define LL_CLASS_SLICE_ABOVE_US 8000u

/* All 0 at first. The caller reads the fields above `private`. */
struct ll_class_slices {
	unsigned slice_us; /* of the lower classes; 0: no step was made */
	double part;       /* of the time with work of the higher class in which the lower ones are off */

	/* private */
	unsigned least_us, most_us; /* shorter and longer ones do not gain */
	unsigned tried_from_us;     /* the slice before the one whose gain is not measured yet; 0: none is tried */
	double left;                /* to the lower classes, of the time, as was last measured without a try */
	double most_left;           /* the same, the largest since the search began */
	double worked_s;            /* since the last check: how long the higher class had work */
	uint64_t stepped_ns;
	bool had_work;
};

/* Follows the measurements of the higher class's jobs, whose gauges ll_lever_step fills: call it after each such step.
 * A gauge of a slice that is not in force any more is emptied. */
void ll_class_slices_step(struct ll_class_slices *slices, const struct ll_lever_job *jobs, size_t count,
			  uint64_t now_ns);

#endif
