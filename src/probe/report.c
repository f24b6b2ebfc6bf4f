#include "probe/report.h"

const struct ll_probe_result *ll_probe_report_find(const struct ll_probe_report *report,
						   const struct ll_probe_cell *like)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct ll_probe_result *result = &report->results[i];
		const struct ll_probe_cell *cell = &result->cell;
		if (!result->is_skipped && cell->parallel == like->parallel &&
		    ll_probe_under_same(cell->under, like->under) && cell->has_priorities == like->has_priorities &&
		    cell->is_full == like->is_full && (!like->connections || cell->connections == like->connections))
			return result;
	}
	return NULL;
}

const struct ll_probe_memory *ll_probe_report_memory(const struct ll_probe_report *report, struct ll_probe_under under)
{
	for (size_t i = 0; i < LL_PROBE_CHOICES; i++) {
		if (report->memories[i].is_known && ll_probe_under_same(report->memories[i].under, under))
			return &report->memories[i];
	}
	return NULL;
}

uint64_t ll_probe_report_step_ns(const struct ll_probe_report *report)
{
	uint64_t step_ns = 0;
	for (size_t i = 0; i < report->count; i++) {
		uint64_t seen_ns = report->results[i].step_ns;
		if (seen_ns && (!step_ns || seen_ns < step_ns))
			step_ns = seen_ns;
	}
	return step_ns;
}
