/*
 * args.h - the options of `loadline probe`, and the cells that they choose.
 */
#ifndef LOADLINE_CLI_PROBE_ARGS_H
#define LOADLINE_CLI_PROBE_ARGS_H

#include "cli/options/option.h"
#include "probe/cell.h"
#include "probe/orders.h"

struct ll_probe_args {
	char *cards;
	char *experiments;
	char *parallel, *under, *priority, *grid, *connections;
	uint64_t count, each, kernel_ns, runs;
	const char *svg;
	bool list, json, set_exclusive;
};

/* The words of lists, NULL-ended, in the order of their enums. */
extern const char *const ll_probe_experiment_words[],
    *const ll_probe_parallel_words[], *const ll_probe_priority_words[], *const ll_probe_grid_words[];

/* What the user asks for. */
struct ll_probe_wish {
	unsigned experiments; /* enum ll_probe_experiment */
	struct ll_probe_choice choice;
	struct ll_probe_load load;
	size_t runs;      /* runs of the slice, preemption and idle measurements */
	size_t cell_runs; /* runs of each cell */
};

/* Reads the options. -EINVAL: the error names the option and the bad word. */
int ll_probe_args_read(const struct ll_probe_args *args, struct ll_probe_wish *ret_wish, struct ll_err *err);

#endif
