/*
 * contention.h - was somebody else on the card while our kernel wanted it?
 *
 * Two signs, both on the card's clock. A hole inside a running kernel: the card was given to another context. A late
 * start: it was with another context when ours was due. A hole cannot come from the host; lateness can, so
 * it is counted from the moment the launch call returned, when the kernel was certainly handed over.
 */
#ifndef LOADLINE_CONTROL_CONTENTION_H
#define LOADLINE_CONTROL_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "control/clock_fit.h"

struct ll_contention_limits {
	uint64_t gap_ns;
	uint64_t late_ns;
	uint64_t first_late_ns; /* instead of late_ns for the first kernel after a pause */
};

/* One finished kernel: host times around its launch, card times from its record. */
struct ll_kernel_trace {
	uint64_t submit_ns;    /* host, before the launch call */
	uint64_t submitted_ns; /* host, after it */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t gap_ns;
	uint64_t previous_end_ns; /* card: end of the kernel queued before it, 0 for none */
	bool is_first;            /* after a pause: another context may have been the last on the card */
};

struct ll_contention {
	uint64_t late_ns; /* what the start was late by, host excluded */
	uint64_t gap_ns;
	bool is_foreign;
};

/* Judges one kernel. Without a fit only holes count. */
struct ll_contention ll_contention_judge(const struct ll_kernel_trace *trace, const struct ll_clock_fit *fit,
					 const struct ll_contention_limits *limits);

#endif
