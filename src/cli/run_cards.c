#include "cli/run_cards.h"

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

/* Asks CUDA, which alone knows what numbers in the variable mean. */
static int keep_visible(const char *visible, bool is_named, const struct ll_card **cards, size_t *count,
			struct ll_err *err)
{
	size_t kept = 0;
	const struct ll_cuda *cuda;
	LL_SCOPE_FREE struct seen *seen = calloc(*count + 1, sizeof *seen);
	if (!seen)
		return ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	if (*count && ll_driver_cuda(cards[0]->driver, &cuda, err) < 0)
		return ll_err_wrap(err, "CUDA_VISIBLE_DEVICES=%.100s", visible);
	for (size_t i = 0; i < *count; i++) {
		int rc = ll_card_cuda_device(cards[i], NULL, &seen[kept].ordinal, is_named ? err : NULL);
		if (rc < 0 && is_named)
			return rc;
		if (rc == 0)
			seen[kept++].card = cards[i];
	}
	qsort(seen, kept, sizeof *seen, by_ordinal);
	for (size_t i = 0; i < kept; i++)
		cards[i] = seen[i].card;
	*count = kept;
	if (kept)
		return 0;
	ll_err_set(err, -ENODEV, "no card is visible: CUDA_VISIBLE_DEVICES=%.100s", visible);
	return ll_err_hint(err, "unset it, or name a card that is there (`loadline status`)");
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
		rc = keep_visible(visible, text != NULL, cards, &count, err);
	if (!rc)
		rc = check_slices(cards, count, err);
	if (rc)
		return rc;
	*ret_cards = cards;
	*ret_count = count;
	cards = NULL;
	return 0;
}

void ll_run_cards_add_uuids(struct ll_strbuf *text, const struct ll_card *const *cards, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ll_strbuf_addf(text, "%s%s", i ? "," : "", cards[i]->uuid);
}
