/*
 * sums.h - parts of a trace's summary: by kernel, and by card.
 */
#ifndef LOADLINE_CLI_TRACE_SUMS_H
#define LOADLINE_CLI_TRACE_SUMS_H

#include "cli/trace/summary.h"

/* False: memory ran out. *ret_kernels is one allocation for free(3). */
bool ll_trace_sum_kernels(const struct ll_trace_run *run, struct ll_trace_kernel_sum **ret_kernels, size_t *ret_count);
bool ll_trace_sum_card(const struct ll_trace_run *run, unsigned card, struct ll_trace_card_sum *ret_sum);

#endif
