#include "cli/queue/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/scope.h"
#include "base/translate.h"
#include "driver/cards.h"

/* The simulated world is told by the environment, as loadlined's own place is. */
int ll_queue_open(struct ll_client *client, struct ll_err *err)
{
	struct ll_place place;
	*client = (struct ll_client){.fd = -1};
	int rc = ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, err);
	if (!rc && !ll_place_is_system(&place))
		rc = -ECONNREFUSED;
	if (!rc)
		rc = ll_client_open(client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION),
				    ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	if (rc != -ECONNREFUSED)
		return rc;
	ll_err_set(err, -ENOENT, "this machine has no queue: the system's loadlined does not serve");
	return ll_err_hint(err, "`loadline doctor` tells more");
}

int ll_queue_read(struct ll_queue_rows *rows, struct ll_err *err)
{
	const struct ll_reply_rows kinds[] = {{LL_MESSAGE_QUEUE_END, NULL, NULL},
					      {LL_MESSAGE_QUEUE_ROW, &rows->jobs, &rows->job_count},
					      {LL_MESSAGE_QUEUE_WINDOW, &rows->windows, &rows->window_count}};
	struct ll_client client;
	union ll_message request;
	*rows = (struct ll_queue_rows){0};
	ll_message_init(&request, LL_MESSAGE_QUEUE);
	int rc = ll_queue_open(&client, err);
	if (!rc)
		rc = ll_client_ask(&client, &request, kinds, sizeof kinds / sizeof *kinds,
				   ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	ll_client_close(&client);
	return rc;
}

void ll_queue_free(struct ll_queue_rows *rows)
{
	free(rows->jobs);
	free(rows->windows);
}

int ll_queue_change(const struct ll_message_queue_act *act, struct ll_err *err)
{
	struct ll_client client;
	union ll_message message;
	int rc = ll_queue_open(&client, err);
	ll_message_init(&message, LL_MESSAGE_QUEUE_ACT);
	struct ll_message_header header = message.header;
	message.queue_act = *act;
	message.header = header;
	if (!rc)
		rc = ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + LL_CLIENT_REPLY_NS, err);
	ll_client_close(&client);
	return rc;
}

enum { MASK_CARDS = 64 };

struct drain_args {
	const char *at;
	bool stop, undo;
};

static const struct ll_option drain_options[] = {
    {.name = "at",
     .placeholder = "TIME",
     LL_OPTION_TEXT(struct drain_args, at),
     .help =
	 N_("From this moment on: \"2026-12-12 22:00\", or \"22:00\" for the next one. Jobs start before only if they "
	    "end before. The default is now.")},
    {.name = "stop",
     LL_OPTION_FLAG(struct drain_args, stop),
     .help = N_("Stop the jobs on the cards now, as at the end of their time: with the signal and the grace of the "
		"configuration.")},
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
	struct ll_message_queue_act change = {.act = args->undo   ? LL_QUEUE_UNDRAIN
						     : args->stop ? LL_QUEUE_DRAIN_AND_STOP
								  : LL_QUEUE_DRAIN,
					      .value = (uint64_t)time(NULL)};
	struct ll_driver *driver = NULL;
	if (!operands->count)
		return ll_err_set(err, -EINVAL, "queue drain: no card");
	if ((args->undo || args->stop) && args->at)
		return ll_err_set(err, -EINVAL, "--%s: acts at once, and takes no --at", args->undo ? "undo" : "stop");
	if (args->undo && args->stop)
		return ll_err_set(err, -EINVAL, "--undo: stops no job, and takes no --stop");
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
    {"loadline queue drain 3 --stop", N_("Card 3 must be free soon: its jobs are stopped too.")},
    {"loadline queue drain 3 --undo", N_("Card 3 is in use again.")},
    {NULL, NULL},
};

const struct ll_command ll_queue_drain = {
    .name = "drain",
    .group = &ll_command_queue,
    .summary = N_("let no more jobs start on cards"),
    .operands = "CARDS...",
    .description = N_("For operators. Jobs on the cards go on to their end, or are stopped with --stop. With --at, "
		      "jobs start there until then if their "
		      "time ends before. It holds until --undo, also if loadlined or the machine "
		      "is started anew."),
    .examples = drain_examples,
    .options = drain_options,
    .args_size = sizeof(struct drain_args),
    .complete = LL_COMPLETE_CARD,
    .run = run_drain,
};

static const struct ll_option no_options[] = {LL_OPTION_END};

/* ---- list ---- */

enum { ALL_STATES };
static const char *const states[] = {"all",      "running", "starting", "borrowed", "recalled",
				     "reserved", "waiting", "paused",   "after",    NULL};

struct list_args {
	const char *user, *tenant;
	int state;
	bool is_json;
};

static const struct ll_option list_options[] = {
    {.name = "user",
     .letter = 'u',
     .placeholder = "USER",
     LL_OPTION_TEXT(struct list_args, user),
     .help = N_("Jobs of this user alone, by name or number.")},
    {.name = "tenant",
     .placeholder = "TENANT",
     LL_OPTION_TEXT(struct list_args, tenant),
     .help = N_("Jobs of this tenant alone.")},
    {.name = "state",
     .placeholder = "STATE",
     LL_OPTION_CHOICE(struct list_args, state),
     .choices = states,
     .fallback = "all",
     .help =
	 N_("Jobs in this state alone. starting: it has its cards, and its command has not begun; borrowed: it runs "
	    "with what others do not use; recalled: its memory leaves, or has left, because that is needed; reserved: "
	    "it has its cards, and borrowers leave them; after: it waits for the end of another job.")},
    LL_OPTION_JSON(struct list_args, is_json),
    LL_OPTION_END,
};

static int run_list(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct list_args *args = data;
	const struct ll_queue_filter filter = {.user = args->user,
					       .tenant = args->tenant,
					       .state = args->state == ALL_STATES ? NULL : states[args->state]};
	struct ll_queue_rows rows;
	(void)operands;
	int rc = ll_queue_read(&rows, err);
	if (!rc)
		rc =
		    args->is_json ? ll_queue_print_json(&rows, &filter, err) : ll_queue_print_text(&rows, &filter, err);
	ll_queue_free(&rows);
	return rc;
}

static const struct ll_example list_examples[] = {
    {"loadline queue", N_("Who has which cards, who comes next, and when.")},
    {"loadline queue -u ann --state waiting", N_("Why the jobs of ann wait.")},
    {NULL, NULL},
};

const struct ll_command ll_queue_list = {
    .name = "list",
    .group = &ll_command_queue,
    .summary = N_("show the jobs that run and wait, in their order"),
    .description = N_(
	"First the jobs that have cards, then those that wait, in the order of the queue, then cards that are or "
	"will be drained, in maintenance or reserved. The start of a waiting job is an estimate: jobs that end "
	"early bring it forward, and jobs that come later and go ahead put it off. A job without --time counts with "
	"the time of the configuration.\n\n"
	"The last column says why a job waits, by the rule that keeps it from starting now: a limit of its tenant or "
	"of each user, the guarantee of another tenant, no room on the cards that it may have, a reservation, cards "
	"out of use, or the fair order, in which it would put off a job that goes first. What the configuration hides "
	"of others is not told here either. On a terminal that is too narrow the reason is on a line of its own.\n\n"
	"With --json there is one object for each job ({\"queued\":…}) and each window ({\"window\":…}). Moments are "
	"seconds since 1970, and what is not known is null."),
    .examples = list_examples,
    .options = list_options,
    .args_size = sizeof(struct list_args),
    .run = run_list,
};

/* ---- changes of one job ---- */

static int read_number(const char *text, uint64_t *ret_number, struct ll_err *err)
{
	int rc = ll_parse_uint(text, 1, UINT64_MAX - 1, ret_number, err);
	return rc ? ll_err_wrap(err, "job") : 0;
}

/* Changes each of the jobs. */
static int change_jobs(const struct ll_operands *operands, enum ll_queue_act act, struct ll_err *err)
{
	int rc =
	    operands->count ? 0 : ll_err_set(err, -EINVAL, "queue: no job; `loadline queue list` has their numbers");
	for (int i = 0; i < operands->count && !rc; i++) {
		struct ll_message_queue_act change = {.act = act};
		rc = read_number(operands->words[i], &change.number, err);
		if (!rc)
			rc = ll_queue_change(&change, err);
		if (rc)
			ll_err_wrap(err, "%s", operands->words[i]);
	}
	return rc;
}

struct cancel_args {
	const char *user;
};

static const struct ll_option cancel_options[] = {
    {.name = "user",
     .letter = 'u',
     .placeholder = "NAME",
     LL_OPTION_TEXT(struct cancel_args, user),
     .help = N_("All jobs of this user, by name or number, in place of JOB.")},
    LL_OPTION_END,
};

static int read_user(const char *text, uint64_t *ret_uid, struct ll_err *err)
{
	const struct passwd *entry = getpwnam(text);
	if (entry)
		*ret_uid = entry->pw_uid;
	else if (ll_parse_uint(text, 0, UINT32_MAX - 1, ret_uid, NULL))
		return ll_err_set(err, -EINVAL, "--user: '%.60s': no user of this machine", text);
	return 0;
}

/* Those that end by themselves meanwhile are done. */
static int cancel_some(const struct ll_queue_rows *rows, uint64_t uid, bool have_places, uint64_t *count,
		       struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < rows->job_count && !rc; i++) {
		struct ll_err why = {0};
		const struct ll_message_queue_row *row = &rows->jobs[i];
		const struct ll_message_queue_act change = {.act = LL_QUEUE_CANCEL, .number = row->number};
		bool has_place = row->flags & (LL_QUEUE_IS_RUNNING | LL_QUEUE_IS_ADMITTED);
		if (row->uid != uid || has_place != have_places)
			continue;
		++*count;
		rc = ll_queue_change(&change, &why);
		rc = rc == -ESRCH ? 0 : rc;
		if (rc && err)
			*err = why;
	}
	return rc;
}

/* Waiting jobs come first: else one would start in the room of a running one that was canceled. */
static int cancel_jobs_of(const char *user, struct ll_err *err)
{
	struct ll_queue_rows rows = {0};
	uint64_t uid = 0, count = 0;
	int rc = read_user(user, &uid, err);
	if (!rc)
		rc = ll_queue_read(&rows, err);
	if (!rc)
		rc = cancel_some(&rows, uid, false, &count, err);
	if (!rc)
		rc = cancel_some(&rows, uid, true, &count, err);
	ll_queue_free(&rows);
	return rc || count ? rc : ll_err_set(err, -ESRCH, "user %.60s: no jobs in the queue", user);
}

static int run_cancel(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct cancel_args *args = data;
	if (args->user && operands->count)
		return ll_err_set(err, -EINVAL, "queue cancel: jobs or --user, not both");
	return args->user ? cancel_jobs_of(args->user, err) : change_jobs(operands, LL_QUEUE_CANCEL, err);
}

static int run_pause(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	(void)data;
	return change_jobs(operands, LL_QUEUE_PAUSE, err);
}

static int run_release(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	(void)data;
	return change_jobs(operands, LL_QUEUE_RELEASE, err);
}

const struct ll_command ll_queue_cancel = {
    .name = "cancel",
    .group = &ll_command_queue,
    .summary = N_("take jobs out of the queue, or end them"),
    .operands = "[JOB]...",
    .description =
	N_("A waiting job is not run. A running job gets the stop signal of the configuration, and is killed "
	   "if it has not ended in the grace. Users may cancel their own jobs, operators all."),
    .options = cancel_options,
    .args_size = sizeof(struct cancel_args),
    .run = run_cancel,
};

const struct ll_command ll_queue_pause = {
    .name = "pause",
    .group = &ll_command_queue,
    .summary = N_("keep waiting jobs from starting"),
    .operands = "JOB...",
    .description = N_(
	"The others do not wait for a paused job. `loadline queue release` ends the pause. Users may pause their own "
	"jobs, operators all."),
    .options = no_options,
    .run = run_pause,
};

const struct ll_command ll_queue_release = {
    .name = "release",
    .group = &ll_command_queue,
    .summary = N_("let paused jobs start again"),
    .operands = "JOB...",
    .description =
	N_("Ends what `loadline queue pause` began. Users may release their own jobs, if no operator has paused them."),
    .options = no_options,
    .run = run_release,
};

/* ---- move ---- */

static int need_two(const struct ll_operands *operands, const char *what, struct ll_err *err)
{
	return operands->count == 2 ? 0 : ll_err_set(err, -EINVAL, "queue: needs a job and %s", what);
}

static int run_move(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_message_queue_act change = {.act = LL_QUEUE_MOVE};
	(void)data;
	int rc = need_two(operands, "a position", err);
	if (!rc)
		rc = read_number(operands->words[0], &change.number, err);
	if (!rc)
		rc = ll_parse_uint(operands->words[1], 1, UINT32_MAX, &change.value, err);
	return rc ? rc : ll_queue_change(&change, err);
}

const struct ll_command ll_queue_move = {
    .name = "move",
    .group = &ll_command_queue,
    .summary = N_("put a waiting job at another position"),
    .operands = "JOB POSITION",
    .description = N_("For operators. The job keeps the position while others come and go; 1 is the first."),
    .options = no_options,
    .run = run_move,
};

/* ---- the group ---- */

static const struct ll_command *const subcommands[] = {
    &ll_queue_list, &ll_queue_cancel, &ll_queue_pause, &ll_queue_release, &ll_queue_move, &ll_queue_drain, NULL,
};

static const struct ll_example group_examples[] = {
    {"loadline queue", N_("Who has which cards, who comes next, and when.")},
    {"loadline queue cancel 12", N_("Take job 12 out of the queue, or end it.")},
    {"loadline queue drain 3 --at 22:00", N_("From ten in the evening on, no job is on card 3.")},
    {NULL, NULL},
};

const struct ll_command ll_command_queue = {
    .name = "queue",
    .subcommands = subcommands,
    .summary = N_("show and change the queue for the cards of the machine"),
    .description = N_(
	"If the configuration of the machine names groups of cards, `loadline run` waits in a queue until its cards "
	"are free, and holds them until the command ends. The order is that of `queue: order` in the configuration. A "
	"job may overtake others if no job that waits starts later for it."),
    .examples = group_examples,
    .options = list_options,
    .args_size = sizeof(struct list_args),
    .run = run_list,
};
