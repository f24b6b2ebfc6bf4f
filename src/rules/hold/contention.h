/*
 * contention.h - whether another program had the card while our kernel wanted it.
 *
 * Two signs, both on the card's clock. A gap inside a running kernel: the card ran another context in between. A late
 * start: the card ran another context when our kernel was due. The host cannot cause a gap, but it can cause lateness.
 * So lateness counts from the return of the launch call, because the driver has the kernel by then.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_RULES_HOLD_CONTENTION_H
#define LOADLINE_RULES_HOLD_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/share/clock_fit.h"

struct ll_contention_limits {
	uint64_t gap_ns;
	uint64_t late_ns;
	uint64_t first_late_ns; /* instead of late_ns, for the first kernel after a pause */
};

/* One finished kernel: host times around its launch, card times from its record. */
struct ll_kernel_trace {
	uint64_t submit_ns;    /* host's clock, before the launch call */
	uint64_t submitted_ns; /* host's clock, after it */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns;
	uint64_t previous_end_ns; /* card's clock: end of the kernel queued before it; 0: none */
	bool is_first;            /* after a pause: another context may have used the card last */
};

struct ll_contention {
	uint64_t late_ns; /* how late the kernel started, without the host's delay */
	uint64_t gap_ns;
	bool is_foreign;
};

/* Judges one kernel. Without a fit only gaps count. */
struct ll_contention ll_contention_judge(const struct ll_kernel_trace *trace, const struct ll_clock_fit *fit,
					 const struct ll_contention_limits *limits);

#endif
