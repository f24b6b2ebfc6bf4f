#include "shim/memory/lent.h"

#include <stdlib.h>

#include "shim/memory/exported.h"
#include "shim/memory/footprint.h"

struct ll_lent {
	uint64_t id, bytes; /* id of the memory (exported.h); size in whole blocks of the card */
	struct ll_lent *next;
};

_Atomic bool ll_lent_is_any;

void ll_lent_add(struct ll_lent **list, const struct ll_extent *block)
{
	struct ll_lent *lent = ll_exported_is_for_others(block->dev, block->shared) ? malloc(sizeof *lent) : NULL;
	if (!lent) {
		ll_exported_drop(block->dev, block->shared);
		return;
	}
	*lent = (struct ll_lent){
	    .id = block->shared, .bytes = ll_footprint_round(block->bytes, LL_FOOTPRINT_BLOCK_BYTES), .next = *list};
	*list = lent;
	ll_lent_is_any = true;
}

static void remove_lent(struct ll_lent **link, struct ll_device_state *dev)
{
	struct ll_lent *lent = *link;
	*link = lent->next;
	ll_exported_drop(dev, lent->id);
	free(lent);
}

uint64_t ll_lent_bytes(struct ll_lent **list, struct ll_device_state *dev)
{
	uint64_t bytes = 0;
	for (struct ll_lent **link = list; *link;) {
		if (!ll_exported_is_for_others(dev, (*link)->id)) {
			remove_lent(link, dev);
			continue;
		}
		bytes += (*link)->bytes;
		link = &(*link)->next;
	}
	return bytes;
}

void ll_lent_end(struct ll_lent **list, struct ll_device_state *dev)
{
	while (*list)
		remove_lent(list, dev);
}
