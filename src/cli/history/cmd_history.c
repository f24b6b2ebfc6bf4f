#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "accounts/history.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "cli/history/history.h"
#include "cli/options/command.h"
#include "cli/report/parts.h"
#include "protocol/client.h"

enum { USER_SIZE = 64, HOW_SIZE = 160 };
#define HISTORY_NS (60 * LL_NS_PER_S)

struct history_args {
	const char *user, *tenant, *since, *until;
	int state;
	uint64_t last;
	bool csv, json;
};

/* In the order of enum ll_past_how, which begins with 1. */
static const char *const states[] = {"all",      "ended",  "done",    "failed",  "killed",   "time",
				     "canceled", "memory", "stopped", "not-run", "requeued", NULL};

static const struct ll_option history_options[] = {
    {.name = "user",
     .letter = 'u',
     .placeholder = "USER",
     LL_OPTION_TEXT(struct history_args, user),
     .help = N_("Jobs of this user alone, by name or number.")},
    {.name = "tenant",
     .placeholder = "TENANT",
     LL_OPTION_TEXT(struct history_args, tenant),
     .help = N_("Jobs of this tenant alone.")},
    {.name = "state",
     .placeholder = "STATE",
     LL_OPTION_CHOICE(struct history_args, state),
     .choices = states,
     .fallback = "all",
     .help = N_("Jobs that ended so alone. ended: nobody told how; failed: with a status other than 0; killed: by a "
		"signal; time: out of time; memory: out of memory; stopped: by a rule of the configuration; not-run: "
		"it left the queue without its cards; requeued: it was stopped, and went back into the queue.")},
    {.name = "since",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct history_args, since),
     .fallback = "7d",
     .help = N_("Jobs that ended since then: so long ago (12h, 7d), or a moment of this machine's time zone "
		"(2026-12-01, or \"2026-12-01 14:00\").")},
    {.name = "until",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct history_args, until),
     .help = N_("Jobs that ended before then, written in the same way.")},
    {.name = "last",
     .placeholder = "NUMBER",
     LL_OPTION_UINT(struct history_args, last),
     .fallback = "100",
     .min = 1,
     .max = LL_PAST_MOST,
     .help = N_("At most so many, the last ones.")},
    {.name = "csv",
     LL_OPTION_FLAG(struct history_args, csv),
     .help = N_("Print CSV, in seconds and bytes. An empty field is unknown.")},
    LL_OPTION_JSON(struct history_args, json),
    LL_OPTION_END,
};

/* ---- lines ---- */

struct line {
	struct ll_message_history_row row;
	double gib_h, borrowed_gib_h;
	int64_t exit_status, signal, by_uid;
	const char *shown_name, *state, *class;
	char user[USER_SIZE], how[HOW_SIZE];
};

static const struct ll_row_column columns[] = {
    {.heading = N_("job"), .key = "number", LL_ROW_NUMBER(struct line, row.number)},
    {.heading = N_("user"), .key = "user", LL_ROW_CHARS(struct line, user), .least = 6},
    {.key = "uid", LL_ROW_NUMBER(struct line, row.uid)},
    {.heading = N_("tenant"), .key = "tenant", LL_ROW_CHARS(struct line, row.tenant), .least = 6},
    {.key = "name", LL_ROW_CHARS(struct line, row.name), .may_lack = true},
    {.key = "command", LL_ROW_CHARS(struct line, row.command), .may_lack = true},
    {.heading = N_("name"), LL_ROW_TEXT(struct line, shown_name), .may_lack = true, .least = 6, .may_go = true},
    {.key = "project", LL_ROW_CHARS(struct line, row.project), .may_lack = true},
    {.heading = N_("cards"), .key = "cards", LL_ROW_CHARS(struct line, row.cards), .may_lack = true, .least = 5},
    {.key = "came", LL_ROW_MOMENT(struct line, row.came_s), .may_lack = true},
    {.heading = N_("start"), .key = "start", LL_ROW_MOMENT(struct line, row.began_s), .may_lack = true},
    {.heading = N_("end"), .key = "end", LL_ROW_MOMENT(struct line, row.ended_s), .may_lack = true},
    {.heading = N_("GPU s"), .key = "gpu_seconds", LL_ROW_SECONDS(struct line, row.used_ns), .decimals = 1},
    {.heading = N_("GiB h"), LL_ROW_REAL(struct line, gib_h), .decimals = 2, .may_go = true},
    {.key = "memory_byte_seconds", LL_ROW_REAL(struct line, row.memory_byte_s)},
    {.heading = N_("borrowed GPU s"),
     .key = "borrowed_gpu_seconds",
     LL_ROW_SECONDS(struct line, row.borrowed_ns),
     .decimals = 1,
     .may_go = true},
    {.heading = N_("borrowed GiB h"), LL_ROW_REAL(struct line, borrowed_gib_h), .decimals = 2, .may_go = true},
    {.key = "borrowed_memory_byte_seconds", LL_ROW_REAL(struct line, row.borrowed_byte_s)},
    {.key = "recalls", LL_ROW_NUMBER(struct line, row.recalls)},
    {.key = "slept_seconds", LL_ROW_SECONDS(struct line, row.slept_ns), .decimals = 1},
    {.key = "lendable_seconds", LL_ROW_SECONDS(struct line, row.lendable_ns), .decimals = 1},
    {.key = "state", LL_ROW_TEXT(struct line, state)},
    {.heading = N_("how it ended"), .key = "how", LL_ROW_CHARS(struct line, how), .least = 10},
    {.key = "exit_status", LL_ROW_STATUS(struct line, exit_status)},
    {.key = "signal", LL_ROW_STATUS(struct line, signal)},
    {.key = "by_uid", LL_ROW_STATUS(struct line, by_uid)},
    {.key = "why", LL_ROW_CHARS(struct line, row.why), .may_lack = true},
    {.key = "asked_cards", LL_ROW_NUMBER(struct line, row.card_count)},
    {.key = "asked_memory_bytes", LL_ROW_BYTES(struct line, row.memory_bytes), .may_lack = true},
    {.key = "asked_compute_percent",
     LL_ROW_PERCENT(struct line, row.compute_permille),
     .decimals = 1,
     .may_lack = true},
    {.key = "asked_time_seconds", LL_ROW_SECONDS(struct line, row.time_ns), .may_lack = true},
    {.key = "class", LL_ROW_TEXT(struct line, class)},
    LL_ROW_END,
};

/* Those that end programs; sigabbrev_np is not in glibc before 2.32. */
static const char *signal_name(int number, char text[HOW_SIZE])
{
	static const struct {
		int number;
		const char *name;
	} names[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
		     {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
		     {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"},
		     {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGSYS, "SIGSYS"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (names[i].number == number)
			return names[i].name;
	}
	snprintf(text, HOW_SIZE, _("signal %d"), number);
	return text;
}

static void write_how(const struct ll_message_history_row *row, char ret_text[HOW_SIZE])
{
	char user[USER_SIZE], name[HOW_SIZE];
	int status = (int)row->status;
	switch (row->how) {
	case LL_PAST_DONE:
		snprintf(ret_text, HOW_SIZE, "%s", _("done"));
		break;
	case LL_PAST_FAILED:
		snprintf(ret_text, HOW_SIZE, _("exit %d"), WEXITSTATUS(status));
		break;
	case LL_PAST_KILLED:
		snprintf(ret_text, HOW_SIZE, _("killed by %.40s"), signal_name(WTERMSIG(status), name));
		break;
	case LL_PAST_TIME:
		snprintf(ret_text, HOW_SIZE, "%s", _("out of time"));
		break;
	case LL_PAST_CANCELED:
		ll_user_name(row->by_uid, user, sizeof user);
		snprintf(ret_text, HOW_SIZE, _("canceled by %s"), user);
		break;
	case LL_PAST_MEMORY:
		snprintf(ret_text, HOW_SIZE, "%s", _("out of memory"));
		break;
	case LL_PAST_STOPPED:
		snprintf(ret_text, HOW_SIZE, _("stopped: %s"), row->why);
		break;
	case LL_PAST_REQUEUED:
		snprintf(ret_text, HOW_SIZE, _("back into the queue: %s"), row->why);
		break;
	case LL_PAST_NOT_RUN:
		snprintf(ret_text, HOW_SIZE, _("not run: %s"), row->why);
		break;
	default:
		snprintf(ret_text, HOW_SIZE, row->why[0] ? _("ended: %s") : _("ended"), row->why);
		break;
	}
}

/* before: the line before; NULL: none. A look-up of a name may take long. */
static void make_line(const struct ll_message_history_row *row, const struct line *before, struct line *line)
{
	static const char *const classes[] = {
	    [LL_LIMIT_CLASS_NORMAL] = "normal", [LL_LIMIT_CLASS_HIGH] = "high", [LL_LIMIT_CLASS_LOW] = "low"};
	static const double gib = 1073741824, s_per_h = 3600;
	/* A job that was canceled while it waited has no status. */
	bool has_status = row->how != LL_PAST_ENDED && row->how != LL_PAST_NOT_RUN && row->began_s &&
			  (row->status || row->how == LL_PAST_DONE);
	int status = (int)row->status;
	*line = (struct line){
	    .row = *row,
	    .gib_h = row->memory_byte_s / gib / s_per_h,
	    .borrowed_gib_h = row->borrowed_byte_s / gib / s_per_h,
	    .exit_status = has_status && WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	    .signal = has_status && WIFSIGNALED(status) ? WTERMSIG(status) : -1,
	    .by_uid = row->how == LL_PAST_CANCELED ? (int64_t)row->by_uid : -1,
	    .shown_name = row->name[0] ? row->name : row->command,
	    .state = states[row->how],
	    .class = row->class < sizeof classes / sizeof *classes ? classes[row->class] : "",
	};
	if (before && before->row.uid == row->uid)
		memcpy(line->user, before->user, sizeof line->user);
	else
		ll_user_name(row->uid, line->user, sizeof line->user);
	write_how(row, line->how);
}

/* ---- loadlined ---- */

static int ask_loadlined(struct ll_client *client, const struct ll_message_history *history,
			 struct ll_history_answer *answer, struct ll_err *err)
{
	const struct ll_reply_rows rows[] = {{LL_MESSAGE_REPORT_END, &answer->end, NULL},
					     {LL_MESSAGE_HISTORY_ROW, &answer->rows, &answer->count}};
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_HISTORY);
	struct ll_message_header header = message.header;
	message.history = *history;
	message.history.header = header;
	return ll_client_ask(client, &message, rows, sizeof rows / sizeof *rows, ll_now_ns() + HISTORY_NS, err);
}

int ll_history_ask(const struct ll_message_history *asked, struct ll_history_answer *ret_answer, struct ll_err *err)
{
	struct ll_client client = {.fd = -1};
	struct ll_place place;
	int rc = ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, err);
	if (!rc)
		rc = ll_client_open(&client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
				    ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	if (!rc)
		rc = ask_loadlined(&client, asked, ret_answer, err);
	ll_client_close(&client);
	if (rc == -ENOENT || rc == -ECONNREFUSED) {
		ll_err_set(err, -ENOENT, "no loadlined with accounts serves here");
		ll_err_hint(err, "the system's loadlined keeps accounts (systemctl start loadlined.socket)");
		return -ENOENT;
	}
	return rc;
}

/* ---- the command ---- */

static int read_args(const struct history_args *args, struct ll_message_history *history, struct ll_err *err)
{
	struct ll_report_period period = {0};
	if (args->csv && args->json)
		return ll_err_set(err, -EINVAL, "history: only one of --csv and --json");
	int rc = ll_report_parse_period(args->since, args->until, false, &period, err);
	history->since_s = period.since_s;
	history->until_s = period.until_s;
	if (!rc && args->user) {
		uid_t uid;
		rc = ll_user_find(args->user, &uid, err);
		history->has_uid = true;
		history->uid = rc ? 0 : uid;
	}
	history->how = (uint32_t)args->state;
	history->most = (uint32_t)args->last;
	ll_message_text_set(history->tenant, sizeof history->tenant, args->tenant ? args->tenant : "");
	return rc;
}

static int print_answer(const struct history_args *args, const struct ll_history_answer *answer, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	LL_SCOPE_FREE struct line *lines = calloc(answer->count + 1, sizeof *lines);
	if (!lines)
		return ll_err_set(err, -ENOMEM, "out of memory");
	int rc = 0;
	for (size_t i = 0; i < answer->count && !rc; i++) {
		make_line(&answer->rows[i], i ? &lines[i - 1] : NULL, &lines[i]);
		rc = args->json ? ll_json_line(ll_row_json(columns, &lines[i]), err) : 0;
	}
	if (rc || args->json)
		return rc;
	if (args->csv)
		ll_rows_add_csv(columns, lines, sizeof *lines, answer->count, &out);
	else if (answer->count)
		ll_rows_add_table(columns, lines, sizeof *lines, answer->count, ll_table_terminal_width(), &out);
	else
		ll_strbuf_addf(&out, "%s\n", _("no job ended in this time"));
	if (!args->csv && answer->end.is_of_one_user)
		ll_strbuf_adds(&out, _("Your own jobs; root, admins and operators see those of all.\n"));
	return ll_print_text(&out, err);
}

static int run_history(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct history_args *args = data;
	struct ll_message_history history = {.most = 0};
	struct ll_history_answer answer = {0};
	(void)operands;
	int rc = read_args(args, &history, err);
	if (!rc)
		rc = ll_history_ask(&history, &answer, err);
	if (!rc)
		rc = print_answer(args, &answer, err);
	if (!rc && answer.end.has_more)
		ll_log(LL_LOG_WARN, "these are the last %u jobs alone; --last gives more, --since and --until others",
		       history.most);
	free(answer.rows);
	return rc;
}

static const struct ll_example history_examples[] = {
    {"loadline history", N_("The jobs that ended in the last seven days, the last first.")},
    {"loadline history -u ann --state memory --since 30d", N_("What ran out of memory.")},
    {"loadline history --since 2026-11-01 --until 2026-12-01 --last 10000 --csv", N_("A month, for a spreadsheet.")},
    {NULL, NULL},
};

const struct ll_command ll_command_history = {
    .name = "history",
    .summary = N_("the jobs that have ended, what they used, and how they ended"),
    .description = N_(
	"Lists jobs from the accounts that the system's loadlined keeps, the last first: number, user, tenant, cards, "
	"start, end, GPU time, memory over time, and how they ended. Root, admins and operators see the jobs of all, "
	"other users "
	"their own, or, with `visibility: {others: all}` of the configuration, those of all, without the commands that "
	"it hides. A job that ended in the last 10 seconds may not be there yet.\n\n"
	"out of memory: a program was refused memory beyond its limit, and the job ended with an error soon after. "
	"ended: nobody told how; loadlined learns the status of a job from the kernel (Linux 6.13 or newer), and from "
	"`loadline submit`.\n\n"
	"borrowed: of GPU time and memory, what came while the job borrowed what others did not use.\n\n"
	"--json and --csv also have when the job came, what it asked for, how often its memory was recalled for its "
	"owner, how long it slept then, and how long it waited although what others did not use would have started it "
	"(lendable, of `reclaim: {observe: true}`)."),
    .examples = history_examples,
    .options = history_options,
    .args_size = sizeof(struct history_args),
    .run = run_history,
};
