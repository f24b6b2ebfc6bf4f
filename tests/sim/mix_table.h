/*
 * mix_table.h - the sorts of mixes that sim_mixes draws: what is read of a mix, how the rule is judged by it, and what
 * is said of all of them.
 */
#ifndef LOADLINE_TESTS_MIX_TABLE_H
#define LOADLINE_TESTS_MIX_TABLE_H

#include <stddef.h>

#include "mix_run.h"

enum { MIX_MOST_MIXES = 2000 };

/* An outcome is what was read of one mix. Those of a table lie one behind the other, outcome_bytes each. */
struct mix_table {
	const char *name;
	size_t outcome_bytes;
	struct mix (*draw)(uint64_t seed, unsigned number);
	void (*run)(const struct mix *mix, void *ret_outcome);
	/* How badly the rule does; the worst are shown. */
	double (*fault)(const void *outcome);
	void (*print)(unsigned number, const struct mix *mix, const void *outcome);
	void (*print_all)(uint64_t seed, unsigned count, const void *outcomes);
};

extern const struct mix_table mix_plain_table, mix_classes_table, mix_caps_table, mix_sparse_table;

/* The row of a program, without an end of line. */
void mix_print_kind(const struct mix_kind *kind, const struct mix_alone *alone);

/* Sorts the values, and returns the value below which that part of them lies. */
double mix_quantile(double *values, unsigned count, double part);

#endif
