#include "card/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

/* A card in MIG mode shows its first slice. */
static uint32_t visible_slot_of(const struct sim_world *w, uint32_t card)
{
	if (!w->cards[card].slice_count)
		return card;
	for (uint32_t i = w->card_count; i < w->slot_count; i++) {
		if (w->cards[i].parent == card)
			return i;
	}
	return card;
}

static int all_cards(const struct sim_world *w, uint32_t cards[SIM_CARDS])
{
	const char *order = getenv("CUDA_DEVICE_ORDER");
	bool by_pci = order && strcmp(order, "PCI_BUS_ID") == 0;
	int count = 0;
	for (uint32_t i = 0; i < w->card_count; i++) {
		uint32_t card = by_pci ? i : w->cuda_order[i];
		if (!w->cards[card].is_gone)
			cards[count++] = visible_slot_of(w, card);
	}
	return count;
}

/* A slice that is not the first of its card is in the list if the card's first slice is. */
static bool is_among(const struct sim_world *w, uint32_t card, const uint32_t *all, int all_count)
{
	uint32_t parent = w->cards[card].parent;
	for (int i = 0; i < all_count; i++) {
		if (all[i] == card || (parent != SIM_NONE && w->cards[all[i]].parent == parent))
			return true;
	}
	return false;
}

/* Returns the index in all[] of a card, or of a slice's own card; -1: unknown. */
static int find_card(const struct sim_world *w, const char *word, const uint32_t *all, int all_count)
{
	if (isdigit((unsigned char)word[0])) {
		char *end;
		unsigned long ordinal = strtoul(word, &end, 10);
		return *end == '\0' && ordinal < (unsigned long)all_count ? (int)all[ordinal] : -1;
	}
	size_t n = strlen(word);
	for (uint32_t i = 0; i < w->slot_count && n > 4; i++) {
		if (strncmp(w->cards[i].uuid, word, n) == 0 && !w->cards[i].is_gone)
			return is_among(w, visible_slot_of(w, i), all, all_count) ? (int)visible_slot_of(w, i) : -1;
	}
	return -1;
}

int sim_visible_cards(const struct sim_world *w, const char *list, uint32_t ret_cards[SIM_CARDS])
{
	uint32_t all[SIM_CARDS];
	int all_count = all_cards(w, all);
	return sim_visible_among(w, all, all_count, list, ret_cards);
}

int sim_visible_among(const struct sim_world *w, const uint32_t *all, int all_count, const char *list,
		      uint32_t ret_cards[SIM_CARDS])
{
	int count = 0;
	if (!list) {
		memcpy(ret_cards, all, sizeof all[0] * (size_t)all_count);
		return all_count;
	}
	LL_SCOPE_FREE char *copy = strdup(list);
	char *save = NULL;
	for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL; word; word = strtok_r(NULL, ", ", &save)) {
		int card = find_card(w, word, all, all_count);
		if (card < 0 || count == SIM_CARDS)
			break;
		ret_cards[count++] = (uint32_t)card;
	}
	return count;
}
