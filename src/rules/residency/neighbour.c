#include "rules/residency/neighbour.h"

bool ll_neighbour_is_wanted(const struct ll_neighbour_view *card)
{
	return card->is_claimed || card->used_bytes > card->moved_bytes + LL_NEIGHBOUR_QUIET_BYTES;
}

/* Returns the room of the card, without memory that is being copied there. */
static uint64_t room_bytes(const struct ll_neighbour_view *card)
{
	uint64_t coming_bytes = card->moved_bytes > card->used_bytes ? card->moved_bytes - card->used_bytes : 0;
	uint64_t kept_bytes = coming_bytes + LL_NEIGHBOUR_RESERVE_BYTES;
	return card->free_bytes > kept_bytes ? card->free_bytes - kept_bytes : 0;
}

size_t ll_neighbour_choose(const struct ll_neighbour_view *cards, size_t count, uint64_t bytes)
{
	size_t best = count;
	for (size_t i = 0; i < count; i++) {
		uint64_t room = room_bytes(&cards[i]);
		if (ll_neighbour_is_wanted(&cards[i]) || room < bytes)
			continue;
		if (best == count || room > room_bytes(&cards[best]))
			best = i;
	}
	return best;
}
