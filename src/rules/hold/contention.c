#include "rules/hold/contention.h"

static uint64_t late_ns(const struct ll_kernel_trace *trace, const struct ll_clock_fit *fit)
{
	if (!fit->has_fit)
		return 0;
	uint64_t due_ns = ll_clock_fit_to_card_latest(fit, trace->submitted_ns);
	if (trace->previous_end_ns > due_ns)
		due_ns = trace->previous_end_ns;
	return trace->start_ns > due_ns ? trace->start_ns - due_ns : 0;
}

struct ll_contention ll_contention_judge(const struct ll_kernel_trace *trace, const struct ll_clock_fit *fit,
					 const struct ll_contention_limits *limits)
{
	struct ll_contention seen = {.late_ns = late_ns(trace, fit), .gap_ns = trace->gap_ns};
	uint64_t late_limit_ns = trace->is_first ? limits->first_late_ns : limits->late_ns;
	seen.is_foreign = seen.gap_ns > limits->gap_ns || seen.late_ns > late_limit_ns;
	return seen;
}
