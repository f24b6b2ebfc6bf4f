#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "mps/command/words.h"
#include "mps/mps.h"

struct set_args {
	char *cards;
	double compute_percent;
	uint64_t memory_bytes;
};

static const struct ll_option set_options[] = {
    {.name = "compute",
     .letter = 'c',
     .placeholder = "SHARE",
     LL_OPTION_PERCENT(struct set_args, compute_percent),
     .min = 0.1,
     .max = 100,
     .help = N_("Share of each card's SMs that every new client may use, such as 25%. MPS rounds down to "
		"pairs of SMs and gives a client at least 8.")},
    {.name = "mem",
     .letter = 'm',
     .placeholder = "SIZE",
     LL_OPTION_BYTES(struct set_args, memory_bytes),
     .help = N_("Device memory that every new client may have on each card, such as 4G.")},
    {.name = "cards",
     .letter = 'i',
     .placeholder = "CARDS",
     LL_OPTION_LIST(struct set_args, cards),
     .complete = LL_COMPLETE_CARD,
     .help = N_("Cards for --mem, of those that the daemon shows. The default is all of them.")},
    LL_OPTION_END,
};

static int check_options(const struct set_args *args, struct ll_err *err)
{
	if (args->compute_percent <= 0 && !args->memory_bytes) {
		ll_err_set(err, -EINVAL, "mps set: nothing to set");
		return ll_err_hint(err, "give --compute or --mem");
	}
	if (args->cards && !args->memory_bytes)
		return ll_err_set(err, -EINVAL, "--cards: goes with --mem only; --compute applies to all cards");
	return ll_mps_check_memory(NULL, 0, args->memory_bytes, err);
}

/* Writes the chosen cards' numbers in the daemon's own count. numbers has room for all cards that the daemon shows. */
static int choose_cards(const struct set_args *args, const struct ll_mps_desk *desk, size_t *numbers, size_t capacity,
			size_t *ret_count, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **shown = NULL;
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t shown_count = 0;
	size_t count = 0;
	int rc = ll_mps_cards_read(desk->driver, desk->folder, &desk->place, &shown, &shown_count, err);
	if (!rc && args->cards)
		rc = ll_cards_select(desk->driver, args->cards, &chosen, &count, err);
	if (rc)
		return rc;
	const struct ll_card **cards = args->cards ? chosen : shown;
	count = args->cards ? count : shown_count;
	*ret_count = 0;
	for (size_t i = 0; i < count && i < capacity; i++) {
		int number = ll_mps_cards_number(shown, shown_count, cards[i]);
		if (number < 0) {
			ll_err_set(err, -EINVAL, "--cards: card %s is not visible to clients of this daemon",
				   cards[i]->label);
			return ll_err_hint(err, "with such a card the driver silently drops every memory limit");
		}
		rc = ll_mps_check_memory(&cards[i], 1, args->memory_bytes, err);
		if (rc)
			return rc;
		numbers[(*ret_count)++] = (size_t)number;
	}
	return 0;
}

static int set_limits(const struct set_args *args, const struct ll_mps_desk *desk, struct ll_mps_list *list,
		      struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + LL_MPS_ASK_NS;
	size_t numbers[LL_MPS_RECORD_CARDS];
	struct ll_mps_limits limits = {
	    .compute_percent = args->compute_percent, .memory_bytes = args->memory_bytes, .cards = numbers};
	int rc = ll_mps_desk_need_daemon(desk, deadline_ns, err);
	if (!rc && args->memory_bytes)
		rc = choose_cards(args, desk, numbers, LL_MPS_RECORD_CARDS, &limits.card_count, err);
	if (!rc)
		rc = ll_mps_list_read(&desk->place, deadline_ns, list, err);
	if (!rc)
		rc = ll_mps_limits_set(&desk->place, deadline_ns, &limits, list, err);
	return rc;
}

static void say_shares(const struct ll_mps_desk *desk, double percent)
{
	LL_SCOPE_FREE const struct ll_card **shown = NULL;
	size_t count = 0;
	if (ll_mps_cards_read(desk->driver, desk->folder, &desk->place, &shown, &count, NULL) == 0)
		ll_mps_print_shares(shown, count, percent);
}

static int run_set(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct set_args *args = data;
	struct ll_mps_desk desk = {.own = NULL};
	struct ll_mps_list list = {0};
	LL_SCOPE_STRBUF struct ll_strbuf names = LL_STRBUF_INIT;
	(void)operands;
	int rc = check_options(args, err);
	if (!rc)
		rc = ll_mps_desk_init(&desk, err);
	if (!rc)
		rc = set_limits(args, &desk, &list, err);
	if (!rc) {
		puts(_("in force for clients that start from now on"));
		ll_mps_list_add_clients(&list, SIZE_MAX, &names);
		if (list.client_count)
			printf(_("running clients keep their limits until they are restarted: %s\n"), names.buf);
		if (args->compute_percent > 0)
			say_shares(&desk, args->compute_percent);
		if (args->memory_bytes)
			ll_sim_print_advice(_(LL_MPS_TOTAL_NOTE));
	}
	ll_mps_list_fini(&list);
	ll_mps_desk_fini(&desk);
	return rc;
}

static const struct ll_example set_examples[] = {
    {"loadline mps set --compute 25% --mem 4G", N_("Limits for every client that starts from now on.")},
    {"loadline mps set --mem 8G -i 1", N_("Card 1 alone.")},
    {NULL, NULL},
};

const struct ll_command ll_mps_set = {
    .name = "set",
    .group = &ll_command_mps,
    .summary = N_("change what new clients may use"),
    .description =
	N_("Sets the limits of the daemon and of its servers, and reads each back. Only new clients get them. A "
	   "running client keeps its old limits; it is named, so that you can restart it.\n\n"
	   "A client still sees the whole card as its total memory; `loadline run --by space --mem SIZE` "
	   "corrects that."),
    .examples = set_examples,
    .options = set_options,
    .args_size = sizeof(struct set_args),
    .run = run_set,
};
