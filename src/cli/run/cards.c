#include "cli/run/cards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

struct seen {
	const struct ll_card *card;
	ll_cu_device ordinal;
};

static int by_ordinal(const void *a, const void *b)
{
	const struct seen *first = a;
	const struct seen *second = b;
	return first->ordinal - second->ordinal;
}

/* Returns the position of the UUID in the list, -1 if it is not there. */
static int position_in(const char *list, const char *uuid)
{
	int position = 0;
	size_t length = strlen(uuid);
	for (const char *word = list; *word; position++) {
		size_t word_length = strcspn(word, ",");
		if (word_length == length && strncmp(word, uuid, length) == 0)
			return position;
		word += word_length + (word[word_length] == ',');
	}
	return -1;
}

/* Whether the variable is a list of whole UUIDs, as `run` writes it. Then its meaning is known without CUDA. */
static bool has_whole_uuids_only(const struct ll_driver *driver, const char *list)
{
	char uuid[LL_UUID_SIZE];
	for (const char *word = list; *word;) {
		size_t length = strcspn(word, ",");
		if (length >= sizeof uuid)
			return false;
		memcpy(uuid, word, length);
		uuid[length] = '\0';
		if (!ll_cards_find_uuid(driver, uuid))
			return false;
		word += length + (word[length] == ',');
	}
	return *list;
}

static int fail_hidden(const struct ll_card *card, const char *visible, struct ll_err *err)
{
	ll_err_set(err, -ENODEV, "card %s (%s): hidden from CUDA by CUDA_VISIBLE_DEVICES=%.100s", card->label,
		   card->uuid, visible);
	ll_err_hint(err, "choose another card, or change the variable");
	return -ENODEV;
}

/* Returns 0 if the card is visible. *ret_ordinal: its CUDA ordinal. CUDA is asked unless the list is plain, because
 * only CUDA knows the meaning of numbers in the variable. */
static int find_ordinal(const struct ll_card *card, const char *visible, bool is_plain, ll_cu_device *ret_ordinal,
			struct ll_err *err)
{
	if (!is_plain)
		return ll_card_cuda_device(card, NULL, ret_ordinal, err);
	*ret_ordinal = position_in(visible, card->uuid);
	return *ret_ordinal < 0 ? fail_hidden(card, visible, err) : 0;
}

static int keep_visible(const struct ll_driver *driver, const char *visible, bool is_named,
			const struct ll_card **cards, size_t *count, struct ll_err *err)
{
	size_t kept = 0;
	bool is_plain = has_whole_uuids_only(driver, visible);
	LL_SCOPE_FREE struct seen *seen = calloc(*count + 1, sizeof *seen);
	if (!seen)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (size_t i = 0; i < *count; i++) {
		struct ll_err why = {0};
		int rc = find_ordinal(cards[i], visible, is_plain, &seen[kept].ordinal, &why);
		if (rc == 0) {
			seen[kept++].card = cards[i];
		} else if (is_named) {
			if (err)
				*err = why;
			return rc;
		}
	}
	qsort(seen, kept, sizeof *seen, by_ordinal);
	for (size_t i = 0; i < kept; i++)
		cards[i] = seen[i].card;
	*count = kept;
	if (kept)
		return 0;
	ll_err_set(err, -ENODEV, "no card is visible: CUDA_VISIBLE_DEVICES=%.100s", visible);
	ll_err_hint(err, "unset it, or name a card that is there (`loadline status`)");
	return -ENODEV;
}

static int check_slices(const struct ll_card *const *cards, size_t count, struct ll_err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (cards[i]->has_slices) {
			ll_err_set(err, -ENODEV, "card %s: is in MIG mode: only its slices can be used",
				   cards[i]->label);
			return ll_err_hint(err, "choose a slice, like -i %s:0", cards[i]->label);
		}
		if (cards[i]->is_mig && count > 1) {
			ll_err_set(err, -ENODEV, "card %s: CUDA shows a program one MIG slice and nothing else",
				   cards[i]->label);
			return ll_err_hint(err, "choose that slice alone with -i %s", cards[i]->label);
		}
	}
	return 0;
}

int ll_run_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
			size_t *ret_count, struct ll_err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_cards_select(driver, text, &cards, &count, err);
	if (!rc && visible)
		rc = keep_visible(driver, visible, text != NULL, cards, &count, err);
	if (!rc)
		rc = check_slices(cards, count, err);
	if (rc)
		return rc;
	*ret_cards = cards;
	*ret_count = count;
	cards = NULL;
	return 0;
}

bool ll_run_cards_are_as_found(const struct ll_driver *driver, const char *text)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	bool is_plain = !text && !getenv("CUDA_VISIBLE_DEVICES");
	for (size_t i = 0; i < count; i++)
		is_plain &= !cards[i].fault && !cards[i].is_mig && !cards[i].has_slices;
	return is_plain;
}

void ll_run_cards_add_uuids(struct ll_strbuf *text, const struct ll_card *const *cards, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ll_strbuf_addf(text, "%s%s", i ? "," : "", cards[i]->uuid);
}
