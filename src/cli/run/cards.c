#include "cli/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "mps/mps.h"

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

/* Whether CUDA shows all cards: a card that does not answer has an index and no number, and slices are shown one by
 * one. */
static bool are_whole(const struct ll_driver *driver)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(driver, &cards);
	for (size_t i = 0; i < count; i++) {
		if (cards[i].fault || cards[i].is_mig || cards[i].has_slices || cards[i].index != i)
			return false;
	}
	return true;
}

/* Whether CUDA's numbers under CUDA_DEVICE_ORDER=PCI_BUS_ID are the indices of the cards. A client of an MPS daemon
 * counts the cards that the daemon shows, and a program is one wherever a daemon serves its environment. */
static bool are_numbered(const struct ll_driver *driver)
{
	return are_whole(driver) && !ll_mps_daemon_is_met();
}

/* The value of CUDA_VISIBLE_DEVICES, and how to read it without CUDA. */
struct list {
	const struct ll_driver *driver;
	const char *text;
	bool is_by_index; /* its numbers are the cards' indices */
};

static struct list list_of(const struct ll_driver *driver, const char *visible)
{
	const char *order = getenv("CUDA_DEVICE_ORDER");
	bool is_by_pci = order && strcmp(order, LL_RUN_CARDS_ORDER) == 0;
	return (struct list){.driver = driver, .text = visible, .is_by_index = is_by_pci && are_numbered(driver)};
}

/* Reads a whole UUID, or an index, and moves *word to the next one. NULL: only CUDA knows what it means. */
static const struct ll_card *take_word(const struct list *list, const char **word)
{
	const struct ll_card *cards;
	size_t count = ll_driver_cards(list->driver, &cards);
	size_t length = strcspn(*word, ",");
	char text[LL_UUID_SIZE];
	if (!length || length >= sizeof text)
		return NULL;
	memcpy(text, *word, length);
	text[length] = '\0';
	*word += length + ((*word)[length] == ',');
	if (!list->is_by_index || strspn(text, "0123456789") != length)
		return ll_cards_find_uuid(list->driver, text);
	unsigned long index = strtoul(text, NULL, 10);
	return index < count ? &cards[index] : NULL;
}

/* Returns how many cards the list names; 0: it has other words than `run` writes. */
static size_t count_words(const struct list *list)
{
	size_t count = 0;
	for (const char *word = list->text; *word; count++) {
		if (!take_word(list, &word))
			return 0;
	}
	return count;
}

/* Returns the position of the card in a list of plain words, -1 if it is not there. */
static int position_of(const struct list *list, const struct ll_card *card)
{
	int position = 0;
	for (const char *word = list->text; *word; position++) {
		if (take_word(list, &word) == card)
			return position;
	}
	return -1;
}

static int fail_hidden(const struct ll_card *card, const char *visible, struct ll_err *err)
{
	ll_err_set(err, -ENODEV, "card %s (%s): hidden from CUDA by CUDA_VISIBLE_DEVICES=%.100s", card->label,
		   card->uuid, visible);
	ll_err_hint(err, "choose another card, or change the variable");
	return -ENODEV;
}

/* Returns 0 if the card is visible. *ret_ordinal: its CUDA ordinal. CUDA is asked unless the list is plain. */
static int find_ordinal(const struct ll_card *card, const struct list *list, bool is_plain, ll_cu_device *ret_ordinal,
			struct ll_err *err)
{
	if (!is_plain)
		return ll_card_cuda_device(card, NULL, ret_ordinal, err);
	*ret_ordinal = position_of(list, card);
	return *ret_ordinal < 0 ? fail_hidden(card, list->text, err) : 0;
}

static int keep_visible(const struct ll_driver *driver, const char *visible, bool is_named,
			const struct ll_card **cards, size_t *count, struct ll_err *err)
{
	size_t kept = 0;
	struct list list = list_of(driver, visible);
	bool is_plain = count_words(&list);
	LL_SCOPE_FREE struct seen *seen = calloc(*count + 1, sizeof *seen);
	if (!seen)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	for (size_t i = 0; i < *count; i++) {
		struct ll_err why = {0};
		int rc = find_ordinal(cards[i], &list, is_plain, &seen[kept].ordinal, &why);
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

/* Returns how many cards the variable shows. */
static size_t count_visible(const struct ll_driver *driver, const char *visible)
{
	struct list list = list_of(driver, visible);
	const struct ll_card *cards;
	const struct ll_cuda *cuda;
	size_t words = count_words(&list);
	int count = 0;
	if (words || !ll_driver_cards(driver, &cards) || ll_driver_cuda(cards->driver, &cuda, NULL) ||
	    cuda->cuDeviceGetCount(&count) != LL_CUDA_SUCCESS)
		return words;
	return (size_t)count;
}

/* Whether the program sees these cards, in this order, if CUDA_VISIBLE_DEVICES stays as it is. */
static bool are_as_found(const struct ll_driver *driver, const char *text, const struct ll_card *const *cards,
			 size_t count)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	LL_SCOPE_FREE const struct ll_card **seen = NULL;
	size_t seen_count = 0;
	if (!visible) /* CUDA's own order is not known without starting it */
		return !text && are_whole(driver);
	if (ll_run_cards_choose(driver, NULL, &seen, &seen_count, NULL) || seen_count != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (seen[i] != cards[i])
			return false;
	}
	return count_visible(driver, visible) == count;
}

const char *ll_run_cards_show(const struct ll_driver *driver, const char *text, const struct ll_card *const *cards,
			      size_t count, bool is_client, struct ll_strbuf *value)
{
	bool has_slice = count && cards[0]->is_mig;
	if (!is_client && !has_slice && are_as_found(driver, text, cards, count))
		return NULL;
	bool is_by_index = !is_client && are_numbered(driver);
	for (size_t i = 0; i < count; i++) {
		char number[16];
		snprintf(number, sizeof number, "%u", cards[i]->index);
		ll_strbuf_addf(value, "%s%s", i ? "," : "", is_by_index ? number : cards[i]->uuid);
	}
	return is_by_index ? LL_RUN_CARDS_ORDER : NULL;
}
