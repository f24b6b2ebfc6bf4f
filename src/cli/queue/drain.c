#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/queue/queue.h"
#include "driver/cards.h"

enum { MASK_CARDS = 64 };

struct drain_args {
	const char *at;
	bool undo;
};

static const struct ll_option drain_options[] = {
    {.name = "at",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct drain_args, at),
     .help =
	 N_("From this moment on: \"2026-12-12 22:00\", or \"22:00\" for the next one. Jobs start before only if they "
	    "end before. The default is now.")},
    {.name = "undo", LL_OPTION_FLAG(struct drain_args, undo), .help = N_("Let jobs start on the cards again.")},
    LL_OPTION_END,
};

/* The next moment at which the clock of this machine shows that time. */
static int64_t next_time(time_t now, int minutes)
{
	time_t at = now;
	for (int days = 0; days < 2 && at <= now; days++) {
		struct tm day;
		localtime_r(&now, &day);
		day.tm_mday += days;
		day.tm_hour = 0;
		day.tm_min = minutes;
		day.tm_sec = 0;
		day.tm_isdst = -1;
		at = mktime(&day);
	}
	return at;
}

static int read_moment(const char *text, uint64_t *ret_s, struct ll_err *err)
{
	time_t now = time(NULL);
	int minutes;
	int64_t at_s = 0;
	int rc = 0;
	if (!ll_parse_time_of_day(text, &minutes, NULL))
		at_s = next_time(now, minutes);
	else
		rc = ll_parse_moment(text, &at_s, err);
	if (!rc && at_s <= now)
		rc = ll_err_set(err, -EINVAL, "'%.60s': is past", text);
	if (rc) {
		ll_err_wrap(err, "--at");
		return ll_err_hint(err, "write \"2026-12-12 22:00\" or \"22:00\"");
	}
	*ret_s = (uint64_t)at_s;
	return 0;
}

static int read_cards(const struct ll_driver *driver, const char *text, uint64_t *mask, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_cards_select(driver, text, &cards, &count, err);
	for (size_t i = 0; i < count && !rc; i++) {
		if (cards[i]->index >= MASK_CARDS)
			return ll_err_set(err, -EINVAL, "card %s: the queue knows the first %d cards", cards[i]->label,
					  MASK_CARDS);
		*mask |= UINT64_C(1) << cards[i]->index;
	}
	return rc;
}

static int run_drain(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct drain_args *args = data;
	struct ll_message_queue_act change = {.act = args->undo ? LL_QUEUE_UNDRAIN : LL_QUEUE_DRAIN,
					      .value = (uint64_t)time(NULL)};
	struct ll_driver *driver = NULL;
	if (!operands->count)
		return ll_err_set(err, -EINVAL, "queue drain: no card");
	if (args->undo && args->at)
		return ll_err_set(err, -EINVAL, "--undo: acts at once, and takes no --at");
	int rc = args->at ? read_moment(args->at, &change.value, err) : 0;
	if (!rc)
		rc = ll_driver_open(&driver, err);
	for (int i = 0; i < operands->count && !rc; i++)
		rc = read_cards(driver, operands->words[i], &change.card_mask, err);
	ll_driver_close(driver);
	return rc ? rc : ll_queue_change(&change, err);
}

static const struct ll_example drain_examples[] = {
    {"loadline queue drain 3", N_("No more jobs start on card 3; those on it go on.")},
    {"loadline queue drain all --at 22:00", N_("Empty the machine for ten in the evening.")},
    {"loadline queue drain 3 --undo", N_("Card 3 is in use again.")},
    {NULL, NULL},
};

const struct ll_command ll_queue_drain = {
    .name = "drain",
    .group = &ll_command_queue,
    .summary = N_("let no more jobs start on cards"),
    .operands = "CARDS...",
    .description =
	N_("For operators. Jobs on the cards go on to their end. With --at, jobs start there until then if their "
	   "time ends before. It holds until --undo, also if loadlined or the machine "
	   "is started anew."),
    .examples = drain_examples,
    .options = drain_options,
    .args_size = sizeof(struct drain_args),
    .complete = LL_COMPLETE_CARD,
    .run = run_drain,
};
