#include "control/busy.h"

uint64_t ll_busy_add(struct ll_busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from_ns = start_ns > busy->until_ns ? start_ns : busy->until_ns;
	if (end_ns <= from_ns)
		return 0;
	busy->until_ns = end_ns;
	return end_ns - from_ns;
}
