#include "control/pace.h"

bool ll_pace_waits_for_each(const struct ll_pace_facts *facts)
{
	if (facts->launches >= facts->waits * LL_PACE_FEW_LAUNCHES)
		return false;
	return facts->launches * facts->launch_ns < facts->waits * LL_PACE_LITTLE_WORK_NS ||
	       facts->shortest_round_ns < LL_PACE_LITTLE_WORK_NS;
}
