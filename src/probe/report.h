/*
 * report.h - everything that was measured on a card, and the statements that follow from it. The table, the JSON lines
 * and the picture are made from it.
 */
#ifndef LOADLINE_PROBE_REPORT_H
#define LOADLINE_PROBE_REPORT_H

#include "base/strbuf.h"
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

/* Returns the smallest step of the card's clock that any kernel saw; 0: no kernel ran. */
uint64_t ll_probe_report_step_ns(const struct ll_probe_report *report);

/* ---- what is true on this card and driver: sentences, each made from measured cells. Pure. A sentence says what was
 * seen, also if that is unusual. If its cells were not measured there is none. ---- */

enum { LL_PROBE_FINDINGS = 12 };

struct ll_probe_finding {
	const char *name;    /* "contexts": what it is about, one word */
	const char *command; /* what measures it again: "loadline probe --parallel processes --under default" */
	struct ll_strbuf text;
};

struct ll_probe_findings {
	struct ll_probe_finding items[LL_PROBE_FINDINGS];
	size_t count;
};

/* Makes the statements. Free with ll_probe_findings_fini. -ENOMEM. */
int ll_probe_findings_make(const struct ll_probe_report *report, struct ll_probe_findings *ret_findings);
void ll_probe_findings_fini(struct ll_probe_findings *findings);

#endif
