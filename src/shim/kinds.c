#include "shim/kinds.h"

#include "base/clock.h"

enum { FIRST_SAMPLES = 4, SAMPLE_EVERY = 16 };

/* What a host thread that is not interrupted may be late between two calls. */
#define HOST_LATE_NS (10 * LL_NS_PER_US)

struct ll_kind *ll_kinds_find(struct ll_kinds *kinds, uint64_t name)
{
	struct ll_kind *kind = &kinds->table[(name ^ name >> 20) % LL_KINDS];
	if (kind->name != name)
		*kind = (struct ll_kind){.name = name};
	return kind;
}

bool ll_kind_wants_sample(const struct ll_kind *kind)
{
	return kind->samples < FIRST_SAMPLES || kind->seen % SAMPLE_EVERY == 0;
}

static void learn(struct ll_kind *kind, uint64_t ns, uint64_t slowness)
{
	kind->ns = kind->samples ? ((slowness - 1) * kind->ns + ns) / slowness : ns;
	kind->samples++;
}

void ll_kind_learn_sample(struct ll_kind *kind, uint64_t ns)
{
	bool is_host = ns > kind->ns && ns - kind->ns < HOST_LATE_NS;
	learn(kind, ns, is_host ? 64 : ns < kind->ns ? 2 : 8);
}

void ll_kind_learn_queued(struct ll_kind *kind, uint64_t ns)
{
	learn(kind, ns, 4);
}
