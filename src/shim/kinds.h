/*
 * kinds.h - what launches of one kind take on the card: the same kernel on the same grid takes the same time.
 *
 * Two sources. A launch on an idle stream that is timed by itself looks longer than it is by what the host was late
 * with it, some us, and never shorter: so by that much the lesser reading counts. A batch of one kind in a queue that
 * never ran empty has no host in its reading.
 *
 * Two kinds in one place of the table drive each other out: rare, and each is learned anew. Pure arithmetic; the caller
 * locks.
 */
#ifndef LOADLINE_SHIM_KINDS_H
#define LOADLINE_SHIM_KINDS_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_KINDS = 1024 };

struct ll_kind {
	uint64_t name;
	uint64_t ns; /* of a launch; 0: not known */
	uint32_t samples, seen;
};

struct ll_kinds {
	struct ll_kind table[LL_KINDS];
};

/* The entry of that kind, empty at first. Any number that differs from others' will do as a name. */
struct ll_kind *ll_kinds_find(struct ll_kinds *kinds, uint64_t name);

/* Whether the next launch of it shall be timed: the first few, then one in sixteen. */
bool ll_kind_wants_sample(const struct ll_kind *kind);

void ll_kind_learn_sample(struct ll_kind *kind, uint64_t ns);
void ll_kind_learn_queued(struct ll_kind *kind, uint64_t ns);

#endif
