#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/options/command.h"
#include "cli/status/status.h"

#define HOME "\033[H"
#define CLEAR "\033[2J"
#define ERASE_LINE_END "\033[K"
#define ERASE_BELOW "\033[J"

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

/* What is read and printed, once or again and again. */
struct shown {
	const struct ll_card *const *chosen;
	size_t count;
	struct ll_status_card *now, *earlier; /* the present reading, and the one before */
	bool has_earlier;
	bool has_jobs; /* jobs without claims belong to no card: with a list of cards they are left out */
	const struct ll_status_style *style;
	const char *sim_folder;
	struct ll_daemon_view view;
};

bool ll_status_terminal(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size = {0};
	*ret_columns = *ret_rows = 0;
	if (!isatty(STDOUT_FILENO))
		return false;
	bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
	*ret_columns = is_known ? size.ws_col : 80;
	*ret_rows = is_known ? size.ws_row : 24;
	return true;
}

static int read_cards(struct shown *shown, struct ll_err *err)
{
	int rc = 0;
	ll_daemon_view_fini(&shown->view);
	ll_daemon_view_init(&shown->view, shown->sim_folder);
	for (size_t i = 0; i < shown->count; i++) {
		int card_rc = ll_status_card_init(&shown->now[i], shown->chosen[i], &shown->view, rc ? NULL : err);
		shown->now[i].earlier = shown->has_earlier ? &shown->earlier[i] : NULL;
		if (shown->has_earlier)
			ll_status_idle_go_on(&shown->now[i].idle, &shown->earlier[i].idle);
		rc = rc ? rc : card_rc;
	}
	return rc;
}

static void fini_cards(struct ll_status_card *cards, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ll_status_card_fini(&cards[i]);
}

static int print_json(const struct shown *shown, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < shown->count; i++)
		rc = ll_status_print_json(&shown->now[i], err);
	if (!rc && shown->has_jobs)
		rc = ll_status_print_jobs_json(&shown->view, shown->now, shown->count, err);
	return rc ? rc : ll_status_print_daemon_json(&shown->view, err);
}

static void add_text(struct ll_strbuf *text, const struct shown *shown, unsigned columns)
{
	ll_status_add_text(text, shown->now, shown->count, columns, shown->style->is_long);
	if (shown->has_jobs)
		ll_status_add_jobs(text, &shown->view, shown->now, shown->count, columns);
	ll_status_add_daemon(text, &shown->view);
}

/* ---- once ---- */

static int print_text(const struct shown *shown, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	unsigned columns, rows;
	ll_status_terminal(&columns, &rows);
	add_text(&text, shown, columns);
	return ll_print_text(&text, err);
}

/* Shows all cards, also if loadlined does not answer, and then fails. */
static int show_once(struct shown *shown, struct ll_err *err)
{
	int rc = read_cards(shown, err);
	if (!rc)
		rc = shown->style->is_json ? print_json(shown, err) : print_text(shown, err);
	fini_cards(shown->now, shown->count);
	if (!rc && shown->view.answer == LL_DAEMON_SILENT) {
		ll_err_set(err, -ETIMEDOUT, "loadlined, pid %d, does not answer", (int)shown->view.pid);
		return ll_err_hint(err, "`loadline doctor` tells more");
	}
	return rc;
}

/* ---- again and again ---- */

static size_t columns_of_line(const char *text)
{
	LL_SCOPE_FREE char *line = strndup(text, strcspn(text, "\n"));
	return line ? ll_utf8_columns(line) : 0;
}

/* Adds at most as many lines as the terminal has rows, because more lines would scroll the first ones away. */
static void add_frame(struct ll_strbuf *frame, const char *text, unsigned columns, unsigned rows)
{
	unsigned used = 1; /* the cursor's row */
	ll_strbuf_adds(frame, HOME);
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t width = columns_of_line(text);
		used += width ? (unsigned)((width + columns - 1) / columns) : 1;
		if (used > rows)
			break;
		ll_strbuf_add(frame, text, length);
		ll_strbuf_adds(frame, ERASE_LINE_END "\r\n");
		text += length + (text[length] == '\n');
	}
	ll_strbuf_adds(frame, ERASE_BELOW);
}

/* On a terminal each reading replaces the one before. Otherwise an empty line separates them. */
static int print_frame(const struct shown *shown, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf frame = LL_STRBUF_INIT;
	unsigned columns, rows;
	bool is_terminal = ll_status_terminal(&columns, &rows);
	add_text(&text, shown, columns);
	if (is_terminal) {
		ll_strbuf_adds(&frame, shown->has_earlier ? "" : CLEAR);
		add_frame(&frame, text.buf, columns, rows);
	} else {
		ll_strbuf_addf(&frame, "%s%s", shown->has_earlier ? "\n" : "", text.buf);
	}
	frame.failed |= text.failed;
	return ll_print_text(&frame, err);
}

/* Returns true if a signal came. */
static bool wait_for_signal(const sigset_t *signals, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		uint64_t rest_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		struct timespec rest = {(time_t)(rest_ns / LL_NS_PER_S), (long)(rest_ns % LL_NS_PER_S)};
		if (sigtimedwait(signals, NULL, &rest) > 0)
			return true;
		if (errno != EINTR)
			return false;
	}
}

/* Goes on until SIGINT or SIGTERM. */
static int watch(struct shown *shown, uint64_t every_ns, struct ll_err *err)
{
	uint64_t next_ns = ll_now_ns();
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	do {
		int rc = read_cards(shown, err);
		if (!rc)
			rc = shown->style->is_json ? print_json(shown, err) : print_frame(shown, err);
		struct ll_status_card *old = shown->earlier;
		if (shown->has_earlier)
			fini_cards(old, shown->count);
		shown->earlier = shown->now;
		shown->now = old;
		shown->has_earlier = true;
		if (rc)
			return rc;
		next_ns += every_ns;
		if (next_ns <
		    ll_now_ns()) /* after a stop of the program or of the machine there is no burst of readings */
			next_ns = ll_now_ns() + every_ns;
	} while (!wait_for_signal(&signals, next_ns));
	return 0;
}

static int show(const struct ll_driver *driver, const struct status_args *args, uint64_t every_ns,
		const struct ll_card *const *chosen, size_t count, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_status_card *first = calloc(count + 1, sizeof *first);
	LL_SCOPE_FREE struct ll_status_card *second = calloc(count + 1, sizeof *second);
	struct shown shown = {.chosen = chosen,
			      .count = count,
			      .now = first,
			      .earlier = second,
			      .has_jobs = !args->cards && !args->watch,
			      .style = &args->style,
			      .sim_folder = ll_driver_sim_folder(driver)};
	if (!first || !second)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	int rc = args->watch ? watch(&shown, every_ns, err) : show_once(&shown, err);
	if (shown.has_earlier)
		fini_cards(shown.earlier, count);
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
		rc = ll_cards_list(driver, args->cards, &chosen, &count, err);
	if (!rc && args->is_decisions)
		rc = ll_status_decisions(driver, chosen, count, args->style.is_json, err);
	else if (!rc)
		rc = show(driver, args, every_ns, chosen, count, err);
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
