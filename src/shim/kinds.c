#include "shim/kinds.h"

enum { FIRST_SAMPLES = 4, MOST_BETWEEN = 256 };

struct ll_kind *ll_kinds_find(struct ll_kinds *kinds, uint64_t name)
{
	struct ll_kind *kind = &kinds->table[(name ^ name >> 20) % LL_KINDS];
	if (kind->name != name)
		*kind = (struct ll_kind){.name = name, .doubts = kinds->doubts};
	return kind;
}

bool ll_kind_wants_sample(const struct ll_kinds *kinds, const struct ll_kind *kind)
{
	return kind->learned < FIRST_SAMPLES || kind->seen >= kind->next || kind->doubts != kinds->doubts;
}

void ll_kind_note_sample(const struct ll_kinds *kinds, struct ll_kind *kind)
{
	uint64_t between = kind->ns ? LL_KIND_SAMPLE_NS * 1000 / LL_KIND_SAMPLE_PERMILLE / kind->ns : 1;
	kind->next = kind->seen + (uint32_t)(between < 1 ? 1 : between > MOST_BETWEEN ? MOST_BETWEEN : between);
	kind->doubts = kinds->doubts;
}

/* The first few count alike; later ones less, the more there are of them in a second. */
static void learn(struct ll_kind *kind, uint64_t ns, uint64_t slowness)
{
	uint64_t parts = kind->learned + 1 < slowness ? kind->learned + 1 : slowness;
	kind->ns = ((parts - 1) * kind->ns + ns) / parts;
	kind->learned++;
}

void ll_kind_learn_sample(struct ll_kind *kind, uint64_t ns)
{
	learn(kind, ns, 8);
}

void ll_kind_learn_queued(struct ll_kind *kind, uint64_t ns)
{
	learn(kind, ns, 4);
}

void ll_kinds_doubt(struct ll_kinds *kinds, struct ll_kind *kind, uint64_t ns)
{
	kinds->doubts++;
	if (kind && kind->ns < ns)
		kind->ns = ns;
}
