/*
 * mix_plain.h - mixes without classes: what the rule loses against the better one of slices and visits.
 */
#ifndef LOADLINE_TESTS_MIX_PLAIN_H
#define LOADLINE_TESTS_MIX_PLAIN_H

#include "mix_table.h"

struct mix_outcome {
	struct mix_alone alone[MIX_MOST];
	struct mix_reading by[MIX_RULE + 1];
	enum mix_way best;     /* by all windows */
	double regret;         /* of the rule's geometric mean of speeds, against the better of the two other ways */
	bool wrongs[MIX_MOST]; /* the program has less than 0.93 of what it has natively, and of its share */
};

struct mix_outcome mix_run_plain(const struct mix *mix);
bool mix_is_settled(const struct mix_outcome *outcome);
void mix_print_plain(unsigned number, const struct mix *mix, const struct mix_outcome *outcome);

#endif
