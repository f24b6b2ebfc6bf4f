/*
 * summary.h - the summary of a trace: the kernels that took most time, the overlap of the processes, and for each card
 * the causes of its idle time (rules/share/spans.h).
 */
#ifndef LOADLINE_CLI_TRACE_SUMMARY_H
#define LOADLINE_CLI_TRACE_SUMMARY_H

#include "cli/trace/run.h"
#include "rules/share/spans.h"

struct ll_trace_kernel_sum {
	const char *name;
	uint64_t calls, total_ns, least_ns, most_ns;
	unsigned processes;
	size_t last_process; /* the last process counted; used while counting */
};

struct ll_trace_process_sum {
	const struct ll_trace_process *process;
	uint64_t kernels, copies, memsets, gate_waits;
	uint64_t busy_ns; /* time in which work of the process made a card busy (ll_trace_is_busy) */
	uint64_t copy_ns, gate_ns;
	uint64_t to_card_bytes, from_card_bytes;
	uint64_t peak_bytes; /* peak of the card's memory that the process allocated while traced */
};

struct ll_trace_card_sum {
	const char *uuid;
	struct ll_idle_split split;
	unsigned processes;     /* number of processes whose work made the card busy */
	uint64_t overlap_ns;    /* time in which such work of two or more processes was under way */
	uint64_t kernel_sum_ns; /* sum of the durations of all kernels */
};

struct ll_trace_summary {
	struct ll_trace_kernel_sum *kernels; /* sorted by total time, longest first */
	size_t kernel_count;
	struct ll_trace_process_sum *processes;
	size_t process_count;
	struct ll_trace_card_sum *cards;
	size_t card_count;
	uint64_t events, dropped_limit, dropped_cupti, dropped_disk;
	int status; /* the command's exit status */
	size_t still_running;
};

int ll_trace_summary_make(const struct ll_trace_run *run, struct ll_trace_summary *ret_summary, struct ll_err *err);
void ll_trace_summary_fini(struct ll_trace_summary *summary);

/* Returns the idle cause with the largest part, such as "host compute". NULL: the card was never idle. */
const char *ll_trace_main_cause(const struct ll_idle_split *split);

/* The first adds tables for people, with the `top` longest kernels. The second prints JSON lines on standard output. */
struct ll_strbuf;
void ll_trace_summary_add_text(struct ll_strbuf *text, const struct ll_trace_summary *summary, size_t top);
int ll_trace_summary_print_json(const struct ll_trace_summary *summary, size_t top, struct ll_err *err);

#endif
