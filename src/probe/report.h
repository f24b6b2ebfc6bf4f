/*
 * report.h - all that was measured on a card: what the table, the JSON lines, the statements and the picture are made
 * of.
 */
#ifndef LOADLINE_PROBE_REPORT_H
#define LOADLINE_PROBE_REPORT_H

#include "probe/experiments.h"
#include "probe/measure.h"

enum ll_probe_experiment {
	LL_PROBE_MATRIX = 1,
	LL_PROBE_SLICE = 2,
	LL_PROBE_PREEMPTION = 4,
	LL_PROBE_IDLE = 8,
	LL_PROBE_FIRST = 16,
};

struct ll_probe_report {
	char card_label[16];
	unsigned card_index;
	char card_name[96];
	char card_uuid[96];
	char driver_version[32];
	bool is_simulated;
	uint32_t sm_count; /* 0: unknown */
	unsigned measured; /* enum ll_probe_experiment, or-ed */
	const struct ll_probe_result *results;
	size_t count;
	struct ll_probe_memory memories[LL_PROBE_CHOICES];
	struct ll_probe_slicing slicing;
	struct ll_probe_arrival arrival;
	struct ll_probe_idling idling;
};

/* The first cell that was measured and is like this one in all but the number of connections, which counts when it is
 * not 0. NULL: none. */
const struct ll_probe_result *ll_probe_report_find(const struct ll_probe_report *report,
						   const struct ll_probe_cell *like);

/* Of that under; NULL: unknown. */
const struct ll_probe_memory *ll_probe_report_memory(const struct ll_probe_report *report, struct ll_probe_under under);

/* The smallest step of the card's clock that any kernel saw; 0: none ran. */
uint64_t ll_probe_report_step_ns(const struct ll_probe_report *report);

#endif
