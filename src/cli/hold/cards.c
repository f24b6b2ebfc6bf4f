#include "cli/hold/cards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "hold/hold.h"

struct choice {
	size_t named, unusable;
	struct ll_err *why; /* why each unusable card cannot be held */
};

static void note_silent(struct choice *choice, const struct ll_card *card)
{
	struct ll_err *why = &choice->why[choice->unusable++];
	ll_err_set(why, card->fault, "card %s: does not answer: %s", card->label, strerror(-card->fault));
	choice->named++;
}

/* Puts the reasons of all cards into one line, because scripts often show the last line only. */
static int refuse_cards(const struct choice *choice, struct ll_err *err)
{
	if (choice->named == 1) {
		*err = choice->why[0];
		return err->code;
	}
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	for (size_t i = 0; i < choice->unusable; i++)
		ll_strbuf_addf(&text, "%s%s", i ? "; " : "", choice->why[i].text);
	ll_err_set(err, choice->why[0].code, "%zu of %zu cards cannot be held: %s", choice->unusable, choice->named,
		   text.failed ? _("out of memory") : text.buf);
	if (choice->unusable < choice->named)
		ll_err_hint(err, "choose other cards with -i, or leave these out with --skip-unusable");
	return err->code;
}

/* Leaves in cards those that can be held. */
static int keep_usable(struct choice *choice, const struct ll_hold_config *config, bool skips_unusable,
		       const struct ll_card **cards, size_t *count, struct ll_err *err)
{
	size_t usable = 0;
	for (size_t i = 0; i < *count; i++) {
		if (ll_hold_check(config, cards[i], &choice->why[choice->unusable]) == 0)
			cards[usable++] = cards[i];
		else
			choice->unusable++;
	}
	choice->named += *count;
	*count = usable;
	if (choice->unusable && (!skips_unusable || !usable))
		return refuse_cards(choice, err);
	for (size_t i = 0; i < choice->unusable; i++)
		ll_warn("%s: not held", choice->why[i].text);
	return 0;
}

int ll_hold_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_hold_config *config,
			 bool skips_unusable, const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err)
{
	const struct ll_card *all, **cards = NULL;
	size_t all_count = ll_driver_cards(driver, &all), count;
	*ret_cards = NULL;
	int rc = ll_cards_select(driver, text, &cards, &count, err);
	if (rc < 0)
		return rc;
	struct choice choice = {.why = calloc(all_count + 1, sizeof *choice.why)};
	if (!choice.why) {
		free(cards);
		return ll_err_set(err, -ENOMEM, "choose the cards: %s", strerror(ENOMEM));
	}
	/* ll_cards_select leaves cards that do not answer out of "all". */
	for (size_t i = 0; strstr(text, "all") && i < all_count; i++) {
		if (all[i].fault)
			note_silent(&choice, &all[i]);
	}
	rc = keep_usable(&choice, config, skips_unusable, cards, &count, err);
	free(choice.why);
	if (rc < 0) {
		free(cards);
		return rc;
	}
	*ret_cards = cards;
	*ret_count = count;
	return 0;
}
