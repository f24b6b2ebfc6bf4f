#include "hold/config.h"

const char *ll_metric_name(enum ll_metric metric)
{
	static const char *const names[] = {
	    [LL_METRIC_UTIL] = "util",     [LL_METRIC_SM] = "sm",     [LL_METRIC_OCCUPANCY] = "occupancy",
	    [LL_METRIC_TENSOR] = "tensor", [LL_METRIC_DRAM] = "dram", [LL_METRIC_POWER] = "power",
	};
	return names[metric];
}

bool ll_metric_is_gpm(enum ll_metric metric, enum ll_gpm_metric *ret_gpm)
{
	static const struct {
		bool is_gpm;
		enum ll_gpm_metric gpm;
	} readings[] = {
	    [LL_METRIC_SM] = {true, LL_GPM_SM},
	    [LL_METRIC_OCCUPANCY] = {true, LL_GPM_OCCUPANCY},
	    [LL_METRIC_TENSOR] = {true, LL_GPM_TENSOR},
	    [LL_METRIC_DRAM] = {true, LL_GPM_DRAM},
	    [LL_METRIC_POWER] = {false},
	};
	if (readings[metric].is_gpm && ret_gpm)
		*ret_gpm = readings[metric].gpm;
	return readings[metric].is_gpm;
}

bool ll_metric_needs_cuda(enum ll_metric metric)
{
	return metric == LL_METRIC_TENSOR || metric == LL_METRIC_DRAM;
}
