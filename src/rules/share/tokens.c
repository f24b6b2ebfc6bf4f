#include "rules/share/tokens.h"

enum { PERMILLE = 1000 };

/* Longer than any pause that matters. It keeps the product below within 64 bits. */
#define LONGEST_NS UINT64_C(3600000000000)

/* Only a damaged page has a cap of more than the whole time. */
static unsigned least_permille(unsigned cap_permille)
{
	return cap_permille < PERMILLE ? cap_permille : PERMILLE;
}

int64_t ll_tokens_most_ns(unsigned cap_permille)
{
	return LL_TOKENS_DEPTH_NS * (int64_t)least_permille(cap_permille) / PERMILLE;
}

int64_t ll_tokens_earn(int64_t balance_ns, uint64_t elapsed_ns, unsigned cap_permille)
{
	int64_t depth_ns = ll_tokens_most_ns(cap_permille);
	uint64_t counted_ns = elapsed_ns < LONGEST_NS ? elapsed_ns : LONGEST_NS;
	if (balance_ns >= depth_ns)
		return depth_ns;
	int64_t earned_ns = balance_ns + (int64_t)(counted_ns * least_permille(cap_permille) / PERMILLE);
	return earned_ns < depth_ns ? earned_ns : depth_ns;
}

uint64_t ll_tokens_wait_ns(int64_t balance_ns, unsigned cap_permille)
{
	return balance_ns > 0 ? 0 : (0 - (uint64_t)balance_ns + 1) * PERMILLE / cap_permille + 1;
}
