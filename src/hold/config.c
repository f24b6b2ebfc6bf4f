#include "hold/config.h"

const char *ll_metric_name(enum ll_metric metric)
{
	static const char *const names[] = {
	    [LL_METRIC_UTIL] = "util",
	    [LL_METRIC_SM] = "sm",
	    [LL_METRIC_OCCUPANCY] = "occupancy",
	    [LL_METRIC_POWER] = "power",
	};
	return names[metric];
}
