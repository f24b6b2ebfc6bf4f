/*
 * mix_caps.h - mixes with caps: how far programs keep to them, what they have of them, and how long launches wait.
 */
#ifndef LOADLINE_TESTS_MIX_CAPS_H
#define LOADLINE_TESTS_MIX_CAPS_H

#include "mix_table.h"

struct mix_cap_outcome {
	struct mix_alone alone[MIX_MOST];
	struct mix_reading native, rule;
	double over; /* the most that a program has used beyond its cap, of all time */
	double
	    stall;   /* the longest wait for a cap, of the longest that its kernels explain: one kernel / cap + 20 ms */
	double caps; /* their sum; 1 if a program has none */
	/* of those with caps: what they used, and what they want: their cap, or what they use alone if that is less */
	double used, wanted;
};

struct mix_cap_outcome mix_run_caps(const struct mix *mix);
void mix_print_caps(unsigned number, const struct mix *mix, const struct mix_cap_outcome *outcome);

#endif
