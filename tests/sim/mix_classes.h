/*
 * mix_classes.h - mixes with classes: what the rule gives the highest class, and what those beneath it keep.
 *
 * The reference is the same mix with those beneath held for a fixed part of the time in which a higher class has work:
 * none, half, all. A program of the highest class is slowed down by those beneath as far as it is slower than with all
 * of them held all the time. So what programs of one class take from each other does not count.
 */
#ifndef LOADLINE_TESTS_MIX_CLASSES_H
#define LOADLINE_TESTS_MIX_CLASSES_H

#include "mix_table.h"

struct mix_class_outcome {
	struct mix_alone alone[MIX_MOST];
	struct mix_reading by[MIX_HELD_ALL + 1];
	double slowdown; /* by the rule, of the program of the highest class that is slowed down most */
	/* of those beneath, geometric means of their speeds: by the rule, and at best by a fixed part that slows the
	 * highest class down no more than the rule does */
	double low, low_best;
};

struct mix_class_outcome mix_run_classes(const struct mix *mix);
void mix_print_classes(unsigned number, const struct mix *mix, const struct mix_class_outcome *outcome);

/* The speed of a program, of its speed alone. */
double mix_class_pace(const struct mix *mix, const struct mix_class_outcome *outcome, enum mix_way way,
		      unsigned program);

#endif
