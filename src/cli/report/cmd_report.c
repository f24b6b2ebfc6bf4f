#include "cli/report/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "accounts/batch.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/common/table.h"
#include "cli/options/command.h"
#include "config/config.h"
#include "driver/cards.h"

/* A report of a year of a busy machine takes a second or two. */
#define REPORT_NS (60 * LL_NS_PER_S)

static char own_database[] = LL_REPORT_DATABASE;
static char *own_files[] = {own_database, NULL};

static int find_place(struct ll_place *place, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	int rc = ll_sim_is_entered() ? ll_driver_open(&driver, err) : 0;
	if (!rc)
		rc = ll_place_find(driver ? ll_driver_sim_folder(driver) : NULL, place, err);
	ll_driver_close(driver);
	return rc;
}

static int explain_absence(struct ll_err *err)
{
	ll_err_set(err, -ENOENT, "report: no loadlined with accounts serves here");
	return ll_err_hint(err,
			   "the system's loadlined keeps accounts (systemctl start loadlined.socket); or name a file, "
			   "such as %s",
			   LL_REPORT_DATABASE);
}

/* Without a configuration, and with one that has faults, there are no prices. */
static void read_prices(struct ll_use_prices *ret_prices)
{
	struct ll_config config = {0};
	struct ll_config_findings findings = {0};
	const struct ll_config_accounts *accounts = &config.policy.accounts;
	int rc = ll_config_load(&config, NULL, &findings, NULL);
	if (!rc && !findings.fault_count) {
		*ret_prices = (struct ll_use_prices){accounts->price_gpu_hour, accounts->price_gib_hour, ""};
		snprintf(ret_prices->currency, sizeof ret_prices->currency, "%s",
			 accounts->currency ? accounts->currency : "");
	}
	ll_config_findings_fini(&findings);
	ll_config_fini(&config);
}

int ll_report_source_open(struct ll_report_source *source, int count, char **files, struct ll_err *err)
{
	struct ll_place place;
	*source = (struct ll_report_source){.files = files, .file_count = count, .client = {.fd = -1}};
	if (count) {
		read_prices(&source->prices);
		return 0;
	}
	int rc = find_place(&place, err);
	if (!rc)
		rc = ll_client_open(&source->client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
				    ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	if (rc != -ECONNREFUSED)
		return rc;
	if (ll_sim_is_entered() || access(LL_REPORT_DATABASE, R_OK))
		return explain_absence(err);
	source->files = own_files;
	source->file_count = 1;
	read_prices(&source->prices);
	return 0;
}

void ll_report_source_close(struct ll_report_source *source)
{
	ll_client_close(&source->client);
}

/* ---- loadlined ---- */

static int add_row(struct ll_use_report *report, const struct ll_message_report_row *row)
{
	struct ll_use_sum sum = {.granted_s = row->granted_s,
				 .used_s = row->used_s,
				 .idle_held_s = row->idle_held_s,
				 .memory_byte_s = row->memory_byte_s,
				 .joules = row->joules,
				 .lent_s = row->lent_s,
				 .borrowed_s = row->borrowed_s,
				 .borrowed_byte_s = row->borrowed_byte_s,
				 .number = row->number};
	memcpy(sum.key, row->key, sizeof sum.key);
	return ll_use_report_add(report, &sum);
}

static int ask_loadlined(struct ll_report_source *source, const struct ll_report_period *period, enum ll_use_by by,
			 struct ll_use_report *report, struct ll_err *err)
{
	struct ll_message_report_end end = {0};
	struct ll_message_report_prices prices = {0};
	struct ll_message_report_row *rows = NULL;
	size_t count = 0;
	const struct ll_reply_rows kinds[] = {{LL_MESSAGE_REPORT_END, &end, NULL},
					      {LL_MESSAGE_REPORT_PRICES, &prices, NULL},
					      {LL_MESSAGE_REPORT_ROW, &rows, &count}};
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REPORT);
	message.report.since_s = period->since_s;
	message.report.until_s = period->until_s;
	message.report.by = (uint32_t)by;
	int rc =
	    ll_client_ask(&source->client, &message, kinds, sizeof kinds / sizeof *kinds, ll_now_ns() + REPORT_NS, err);
	for (size_t i = 0; i < count && !rc; i++) {
		if (add_row(report, &rows[i]))
			rc = ll_err_set(err, -ENOMEM, "out of memory");
	}
	free(rows);
	source->is_of_one_user = end.is_of_one_user;
	if (prices.header.kind) {
		source->prices = (struct ll_use_prices){prices.gpu_hour, prices.gib_hour, ""};
		memcpy(source->prices.currency, prices.currency, sizeof source->prices.currency);
	}
	return rc == -ENOENT ? explain_absence(err) : rc;
}

/* ---- both ---- */

int ll_report_source_read(struct ll_report_source *source, const struct ll_report_period *period, enum ll_use_by by,
			  struct ll_use_report *ret_report, struct ll_err *err)
{
	const struct ll_use_query query = {
	    .since_s = period->since_s, .until_s = period->until_s, .by = by, .until_ns = ll_now_ns() + REPORT_NS};
	int rc = 0;
	*ret_report = (struct ll_use_report){0};
	for (int i = 0; i < source->file_count && !rc; i++) {
		rc = ll_use_report_read(ret_report, source->files[i], &query, err);
		if (rc)
			ll_err_exit_with(err, LL_EXIT_FAILED);
	}
	if (!source->file_count)
		rc = ask_loadlined(source, period, by, ret_report, err);
	ll_use_report_sort(ret_report, by);
	return rc;
}

struct report_args {
	const char *since, *until, *html;
	int by;
	bool csv, json;
};

static const struct ll_option report_options[] = {
    {.name = "since",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct report_args, since),
     .fallback = "7d",
     .help = N_("Begin of the report: so long ago (12h, 7d), or a moment of this machine's time zone (2026-12-01, or "
		"\"2026-12-01 14:00\"). Use is kept by the hour: the report begins with the hour of that moment.")},
    {.name = "until",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct report_args, until),
     .help = N_("End of the report, written in the same way. Without it the report ends now.")},
    {.name = "by",
     .placeholder = "WHAT",
     LL_OPTION_CHOICE(struct report_args, by),
     .choices = ll_report_by_words,
     .fallback = "tenant",
     .help = N_("One line for each of these.")},
    {.name = "csv",
     LL_OPTION_FLAG(struct report_args, csv),
     .help = N_("Print CSV, in seconds and byte-seconds. An empty field is unknown.")},
    LL_OPTION_JSON(struct report_args, json),
    {.name = "html",
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct report_args, html),
     .complete = LL_COMPLETE_FILE,
     .help = N_("Write a page with pictures by day and by tenant, and tables, into this file. The page needs no other "
		"file.")},
    LL_OPTION_END,
};

/* ---- times ---- */

static int parse_time(const char *option, const char *text, int64_t now_s, int64_t *ret_s, struct ll_err *err)
{
	uint64_t ago_ns;
	if (!ll_parse_moment_or_day(text, ret_s, NULL))
		return 0;
	int rc = ll_parse_duration(text, &ago_ns, err);
	if (rc)
		return ll_err_wrap(err, "--%s: neither a moment such as 2026-12-01 nor a time", option);
	*ret_s = now_s - (int64_t)(ago_ns / LL_NS_PER_S);
	return 0;
}

int ll_report_parse_period(const char *since, const char *until, bool by_hours, struct ll_report_period *ret_period,
			   struct ll_err *err)
{
	int64_t now_s = (int64_t)(ll_wall_ns() / LL_NS_PER_S);
	struct ll_report_period period = {.until_s = now_s + 1};
	int rc = parse_time("since", since, now_s, &period.since_s, err);
	if (!rc && until)
		rc = parse_time("until", until, now_s, &period.until_s, err);
	if (rc)
		return rc;
	if (by_hours)
		period.since_s = ll_use_hour_s(period.since_s);
	if (period.since_s > period.until_s)
		return until ? ll_err_set(err, -EINVAL, "--until %s is before --since %s", until, since)
			     : ll_err_set(err, -EINVAL, "--since %s is in the future", since);
	*ret_period = period;
	return 0;
}

/* ---- the forms ---- */

static int write_file(const char *path, const struct ll_strbuf *text, struct ll_err *err)
{
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "we");
	if (file && fwrite(text->buf, 1, text->length, file) == text->length && fflush(file) == 0)
		return 0;
	ll_err_set(err, -errno, "--html %s: %s", path, strerror(errno));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

static int write_html(const struct report_args *args, struct ll_report_source *source,
		      const struct ll_report_period *period, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf page = LL_STRBUF_INIT;
	int rc = ll_report_add_html(&page, source, period, err);
	if (!rc && page.failed)
		rc = ll_err_set(err, -ENOMEM, "out of memory");
	return rc ? rc : write_file(args->html, &page, err);
}

static int print_report(const struct report_args *args, const struct ll_use_report *report,
			const struct ll_report_source *source, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	enum ll_use_by by = (enum ll_use_by)args->by;
	if (args->json)
		return ll_report_print_json(report, by, &source->prices, err);
	if (args->csv)
		ll_report_add_csv(&out, report, by, &source->prices);
	else if (!report->count)
		ll_strbuf_adds(&out, _("Nothing was used in this time.\n"));
	else
		ll_report_add_text(&out, report, by, &source->prices, (unsigned)ll_table_terminal_width());
	if (!args->csv && source->is_of_one_user)
		ll_strbuf_adds(&out, _("Your own jobs; root, admins and operators see those of all.\n"));
	return ll_print_text(&out, err);
}

static int print_sums(const struct report_args *args, struct ll_report_source *source,
		      const struct ll_report_period *period, struct ll_err *err)
{
	struct ll_use_report report;
	int rc = ll_report_source_read(source, period, (enum ll_use_by)args->by, &report, err);
	if (!rc)
		rc = print_report(args, &report, source, err);
	ll_use_report_fini(&report);
	return rc;
}

static int run_report(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct report_args *args = data;
	struct ll_report_period period = {0};
	struct ll_report_source source;
	if (args->csv + args->json + (args->html != NULL) > 1)
		return ll_err_set(err, -EINVAL, "report: only one of --csv, --json and --html");
	int rc = ll_report_parse_period(args->since, args->until, true, &period, err);
	if (rc)
		return rc;
	rc = ll_report_source_open(&source, operands->count, operands->words, err);
	if (!rc)
		rc = args->html ? write_html(args, &source, &period, err) : print_sums(args, &source, &period, err);
	ll_report_source_close(&source);
	return rc;
}

static const struct ll_example report_examples[] = {
    {"loadline report", N_("What each tenant used in the last seven days.")},
    {"loadline report --since 2026-11-01 --until 2026-12-01 --by user --csv", N_("A month, for a spreadsheet.")},
    {"loadline report --since 30d --html use.html", N_("A page with pictures.")},
    {"loadline report --by card gpu1.db gpu2.db", N_("Copies of the files of two machines, together.")},
    {NULL, NULL},
};

const struct ll_command ll_command_report = {
    .name = "report",
    .summary = N_("what was granted and used, by tenant, user, job, card or day"),
    .operands = "[DATABASE]...",
    .description = N_(
	"Adds up the accounts that the system's loadlined keeps. Without DATABASE it asks loadlined: root, admins "
	"and operators get the use of all, other users get what their own jobs used, or, with `visibility: {others: "
	"all}` "
	"of the configuration, the use of all. DATABASE is a file of accounts, "
	"/var/lib/loadline/accounts.db or a copy of one; several are added up. What was used in the last 10 seconds "
	"may not be in the accounts yet.\n\n"
	"The columns: granted, the time for which jobs could use a card, times their share of compute; used, the time "
	"for which the card ran their kernels; idle held, the time for which they held a card and had no work for it; "
	"memory, the device memory that they held, times the time; energy, their part of what the card's counter says; "
	"with prices in the "
	"configuration also cost. `-` is "
	"unknown: this version knows nothing of lent time, and a card without an energy counter gives no energy. "
	"Borrowed is the part of used, and of memory, that came while the job borrowed what others did not use. "
	"Synthetic loads of `loadline hold` do not count."),
    .examples = report_examples,
    .options = report_options,
    .complete = LL_COMPLETE_FILE,
    .args_size = sizeof(struct report_args),
    .run = run_report,
};
