#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/sensed_cards.h"
#include "cli/options/command.h"
#include "cli/status/decisions.h"
#include "cli/status/jobs.h"
#include "cli/status/status.h"

#define LEAST_EVERY_NS (100 * LL_NS_PER_MS)

struct status_args {
	char *cards;
	struct ll_status_style style;
	const char *watch; /* NULL: print once */
	bool is_decisions;
};

static const struct ll_option status_options[] = {
    LL_OPTION_CARDS(struct status_args, cards),
    LL_OPTION_JSON(struct status_args, style.is_json),
    {.name = "long",
     .letter = 'l',
     LL_OPTION_FLAG(struct status_args, style.is_long),
     .help = N_("Print for each tenant how it is shared and why, and a long line for each claim, with all limits, with "
		"what the card counts for it, and with what of an "
		"evictable program is where.")},
    {.name = "watch",
     .letter = 'w',
     .placeholder = "SECONDS",
     LL_OPTION_OPTIONAL(struct status_args, watch),
     .help = N_("Read again every SECONDS seconds (default: 2) until Ctrl-C. Each tenant's share of the "
		"card since the last reading stands beside its total.")},
    {.name = "decisions",
     LL_OPTION_FLAG(struct status_args, is_decisions),
     .help = N_(
	 "Print instead how loadlined decided lately whether each card is shared by time slices or by visits, and how "
	 "long lower classes are held: when, what it measured of each tenant, and what it found. With --json each "
	 "decision has all numbers that went into it.")},
    LL_OPTION_END,
};

/* Without a list from the user it shows all cards, also those that do not answer. */
static int choose_cards(const struct ll_driver *driver, const char *text, const struct ll_card ***ret_cards,
			size_t *ret_count, struct ll_err *err)
{
	if (text)
		return ll_cards_select(driver, text, ret_cards, ret_count, err);
	const struct ll_card *all;
	size_t count = ll_driver_cards(driver, &all);
	const struct ll_card **list = calloc(count, sizeof *list);
	if (!list) {
		ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		list[i] = &all[i];
	*ret_cards = list;
	*ret_count = count;
	return 0;
}

/* What is printed once. */
struct shown {
	const struct ll_status_style *style;
	struct ll_status_card *cards;
	size_t count;
	struct ll_daemon_view view;
	bool has_jobs; /* jobs without claims belong to no card: with a list of cards they are left out */
};

static int print_json(const struct shown *shown, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < shown->count; i++)
		rc = ll_status_print_json(&shown->cards[i], err);
	if (!rc && shown->has_jobs)
		rc = ll_status_print_jobs_json(&shown->view, shown->cards, shown->count, err);
	return rc ? rc : ll_status_print_daemon_json(&shown->view, err);
}

static int print_text(const struct shown *shown, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	unsigned columns, rows;
	ll_status_terminal(&columns, &rows);
	ll_status_add_text(&text, shown->cards, shown->count, columns, shown->style->is_long);
	if (shown->has_jobs)
		ll_status_add_jobs(&text, &shown->view, shown->cards, shown->count, columns);
	ll_status_add_daemon(&text, &shown->view);
	if (text.failed)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	fwrite(text.buf, 1, text.length, stdout);
	return 0;
}

/* Shows all cards, also if loadlined does not answer, and then fails. */
static int show_cards(struct shown *shown, const struct ll_card *const *chosen, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < shown->count; i++) {
		int card_rc = ll_status_card_init(&shown->cards[i], chosen[i], &shown->view, rc ? NULL : err);
		rc = rc ? rc : card_rc;
	}
	if (!rc)
		rc = shown->style->is_json ? print_json(shown, err) : print_text(shown, err);
	for (size_t i = 0; i < shown->count; i++)
		ll_status_card_fini(&shown->cards[i]);
	if (!rc && shown->view.answer == LL_DAEMON_SILENT) {
		ll_err_set(err, -ETIMEDOUT, "loadlined, pid %d, does not answer", (int)shown->view.pid);
		return ll_err_hint(err, "`loadline doctor` tells more");
	}
	return rc;
}

static int show_once(const struct ll_driver *driver, const struct status_args *args,
		     const struct ll_card *const *chosen, size_t count, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_status_card *cards = calloc(count + 1, sizeof *cards);
	struct shown shown = {.style = &args->style, .cards = cards, .count = count, .has_jobs = !args->cards};
	if (!cards)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	ll_daemon_view_init(&shown.view, ll_driver_sim_folder(driver));
	int rc = show_cards(&shown, chosen, err);
	ll_daemon_view_fini(&shown.view);
	return rc;
}

/* Reads "5", or a time with a unit. */
static int read_every(const char *text, uint64_t *ret_every_ns, struct ll_err *err)
{
	uint64_t every_ns = 0;
	if (ll_parse_duration(*text ? text : "2", &every_ns, NULL) < 0 || every_ns < LEAST_EVERY_NS)
		return ll_err_set(err, -EINVAL, "--watch: '%.60s': not a number of seconds from 0.1 on", text);
	*ret_every_ns = every_ns;
	return 0;
}

static int run_status(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	const struct status_args *args = words;
	struct ll_driver *driver = NULL;
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count = 0;
	(void)operands;
	uint64_t every_ns = 0;
	int rc = args->watch ? read_every(args->watch, &every_ns, err) : 0;
	if (!rc)
		rc = ll_cards_open(-EACCES, &driver, err); /* behind the fence: what the sensor tells */
	if (!rc)
		rc = choose_cards(driver, args->cards, &chosen, &count, err);
	if (!rc && args->is_decisions)
		rc = ll_status_decisions(driver, chosen, count, args->style.is_json, err);
	else if (!rc && args->watch)
		rc = ll_status_watch(chosen, count, every_ns, &args->style, err);
	else if (!rc)
		rc = show_once(driver, args, chosen, count, err);
	ll_driver_close(driver);
	return rc;
}

static const struct ll_example status_examples[] = {
    {"loadline status", N_("Show every card and what is claimed on it.")},
    {"loadline status --long", N_("The same with all limits.")},
    {"loadline status --watch=5", N_("The same every 5 seconds, with each tenant's share of that time.")},
    {"loadline status --decisions -i 0", N_("How card 0 was shared lately, and what was measured.")},
    {"loadline status --json | jq 'select(.synthetic)'", N_("The synthetic loads, for a script.")},
    {NULL, NULL},
};

const struct ll_command ll_command_status = {
    .name = "status",
    .summary = N_("show the cards and the claims on them"),
    .description = N_(
	"Prints one row for each card, with its utilisation, memory, power, temperature and compute mode. "
	"Below is one row for each claim: a program under limits, or a synthetic load of `loadline "
	"hold`. A synthetic load is always labelled, and its busy seconds and joules are counted apart from "
	"real work. A program's row has its job's number, its process and user, its tenant, its state with the claim "
	"whose turn it "
	"waits for, when it last had work on the card, its age, the memory that it has reserved of its limit, its "
	"tenant's share of the card's time lately, its GPU time, and its command. After the claims "
	"come tenants that have nothing on the card, and processes without a claim, which are ungoverned. The MPS "
	"server and programs that an older loadline governs are named as such.\n\n"
	"The last kernel is \"now\" for a program that has work on the card, queued or running; otherwise it is how "
	"long "
	"ago that was, or \"never\". A program without the library does not tell: \"≥ 3 h\" says that the card has had "
	"no work of anybody for so long, \"unknown: card busy\" that it has some. NVML keeps 14 seconds of its "
	"utilisation; each status goes on from this user's last one, so one every 10 seconds, such as --watch, "
	"sees hours. Kernels of less than 2 ms in 200 ms are not seen so.\n\n"
	"Where a command cannot be read within a quarter of a second, because the program pins memory now, the "
	"command is that which `loadline run` was given, or the name of the program in brackets.\n\n"
	"On a terminal names and commands are cut to its width, numbers never. With --long there is a long line for "
	"each claim instead.\n\n"
	"With --json there is one object for each card ({\"card\":0,\"uuid\":…}), each claim "
	"({\"claim\":\"0/17\",\"pid\":…}), each tenant without claims ({\"tenant_row\":3,\"tenant\":…}) and "
	"each process without one ({\"process\":\"0/4711\",…}). A value that a card does not tell is "
	"null. last_kernel is running, ago, at_least, never or unknown, and last_kernel_seconds how long ago that was; "
	"process_age_seconds is the age of the process, age_seconds that of its claim.\n\n"
	"Jobs that do not use CUDA yet, as loadlined knows them, are in a table of their own. With --json one object "
	"({\"daemon\":{…}}) says of how many jobs loadlined knows, and one for each of these jobs ({\"job\":{…}}) "
	"follows. "
	"Jobs are left out with -i and with --watch. status does not start loadlined.\n\n"
	"status shows one machine. This shows several, with the name of each before its lines; one without lines has "
	"not answered within 10 s:\n\n"
	"    for host in gpu1 gpu2\n"
	"    do\n"
	"        timeout 10 ssh -o BatchMode=yes \"$host\" loadline status 2>&1 |\n"
	"            sed \"s/^/$host: /\" &\n"
	"    done | sort -s -k 1,1\n\n"
	"loadlined keeps the last 256 decisions of a card while a job is on it. doc/share.md tells how to read "
	"them.\n\n"
	"loadlined knows the programs of one user. Programs of others are shown as ungoverned; a synthetic load is "
	"shown "
	"whoever started it."),
    .examples = status_examples,
    .options = status_options,
    .args_size = sizeof(struct status_args),
    .run = run_status,
};
