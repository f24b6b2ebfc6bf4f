#include "shim/memory/graph_need.h"

#include <stdbool.h>

#include "shim/memory/footprint.h"

static bool is_before(const struct ll_graph_block *a, const struct ll_graph_block *b)
{
	return a->device != b->device ? a->device < b->device : a->address < b->address;
}

/* Shell's sort, because qsort allocates memory in some C libraries. */
void ll_graph_need_sort(struct ll_graph_block *blocks, size_t count)
{
	for (size_t step = count / 2; step > 0; step = step == 2 ? 1 : step * 5 / 11) {
		for (size_t i = step; i < count; i++) {
			struct ll_graph_block block = blocks[i];
			size_t k = i;
			for (; k >= step && is_before(&block, &blocks[k - step]); k -= step)
				blocks[k] = blocks[k - step];
			blocks[k] = block;
		}
	}
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t ll_graph_need(const struct ll_graph_block *blocks, size_t count, size_t *ret_count)
{
	uint64_t sum = 0;
	size_t i = 0;
	while (i < count && blocks[i].device == blocks[0].device) {
		uint64_t start = blocks[i].address, end = add_capped(start, blocks[i].bytes);
		for (i++; i < count && blocks[i].device == blocks[0].device && blocks[i].address < end; i++) {
			uint64_t its_end = add_capped(blocks[i].address, blocks[i].bytes);
			end = its_end > end ? its_end : end;
		}
		sum = add_capped(sum, ll_footprint_round(end - start, LL_FOOTPRINT_POOL_STEP_BYTES));
	}
	*ret_count = i;
	return sum;
}
