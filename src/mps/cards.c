#include "mps/cards.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "mps/daemon.h"
#include "mps/process.h"
#include "mps/record.h"

enum { VISIBLE_SIZE = 4096 };

/* Reads a word as the driver does: as a number, or as the beginning of a UUID. */
static const struct ll_card *find_card(const struct ll_driver *driver, const char *word)
{
	const struct ll_card *all;
	size_t count = ll_driver_cards(driver, &all);
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	bool is_number = end != word && !*end;
	for (size_t i = 0; i < count; i++) {
		bool is_named = is_number ? !all[i].is_mig && all[i].index == number
					  : *word && strncasecmp(all[i].uuid, word, strlen(word)) == 0;
		if (is_named)
			return &all[i];
	}
	return NULL;
}

/* The first word without a card ends the list, as in the driver. */
static size_t add_visible(const struct ll_driver *driver, char *text, const struct ll_card **cards, size_t capacity)
{
	size_t count = 0;
	char *rest = NULL;
	for (char *word = strtok_r(text, ",", &rest); word && count < capacity; word = strtok_r(NULL, ",", &rest)) {
		const struct ll_card *card = find_card(driver, word + strspn(word, " "));
		if (!card)
			break;
		cards[count++] = card;
	}
	return count;
}

static size_t add_all(const struct ll_driver *driver, const struct ll_card **cards)
{
	const struct ll_card *all;
	size_t count = ll_driver_cards(driver, &all);
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (!all[i].fault && !all[i].has_slices)
			cards[used++] = &all[i];
	}
	return used;
}

static size_t add_recorded(const struct ll_driver *driver, const struct ll_mps_record *record,
			   const struct ll_card **cards)
{
	size_t used = 0;
	for (size_t i = 0; i < record->card_count; i++) {
		const struct ll_card *card = ll_cards_find_uuid(driver, record->cards[i].uuid);
		if (card)
			cards[used++] = card;
	}
	return used;
}

int ll_mps_cards_read(const struct ll_driver *driver, const char *folder, const struct ll_mps_place *place,
		      const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err)
{
	const struct ll_card *all;
	size_t capacity = ll_driver_cards(driver, &all) + LL_MPS_RECORD_CARDS;
	const struct ll_card **cards = calloc(capacity, sizeof *cards);
	struct ll_mps_record record;
	struct ll_mps_daemon daemon;
	char visible[VISIBLE_SIZE];
	if (!cards)
		return ll_err_set(err, -ENOMEM, "MPS: cards: %s", strerror(ENOMEM));
	bool is_seen = ll_mps_daemon_find(place, &daemon, NULL) == 0;
	if (ll_mps_record_read(folder, place->pipe, &record, NULL) == 0 && (!is_seen || record.pid == daemon.pid))
		*ret_count = add_recorded(driver, &record, cards);
	else if (is_seen && ll_mps_process_variable(daemon.pid, "CUDA_VISIBLE_DEVICES", visible, sizeof visible))
		*ret_count = add_visible(driver, visible, cards, capacity);
	else
		*ret_count = add_all(driver, cards);
	*ret_cards = cards;
	return 0;
}

int ll_mps_cards_number(const struct ll_card *const *cards, size_t count, const struct ll_card *card)
{
	for (size_t i = 0; i < count; i++) {
		if (cards[i] == card)
			return (int)i;
	}
	return -1;
}
