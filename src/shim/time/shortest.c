#include "shim/time/shortest.h"

/* Keys are products or addresses: the upper bits of a product with an odd number depend on all of them. */
static unsigned place_of(uint64_t key)
{
	return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % LL_SHORTEST_KERNELS;
}

void ll_shortest_note(struct ll_shortest *shortest, uint64_t key, uint64_t ns)
{
	unsigned at = place_of(key);
	uint64_t least_ns = shortest->kernels[at].least_ns, next_ns = shortest->kernels[at].next_ns;
	if (!ns)
		return;
	if (shortest->kernels[at].key != key)
		least_ns = next_ns = 0;
	if (!least_ns || ns < least_ns) {
		next_ns = least_ns;
		least_ns = ns;
	} else if (!next_ns || ns < next_ns) {
		next_ns = ns;
	}
	shortest->kernels[at].key = key;
	shortest->kernels[at].least_ns = least_ns;
	shortest->kernels[at].next_ns = next_ns;
}

uint64_t ll_shortest_ns(const struct ll_shortest *shortest, uint64_t key)
{
	unsigned at = place_of(key);
	return shortest->kernels[at].key == key ? shortest->kernels[at].next_ns : 0;
}
