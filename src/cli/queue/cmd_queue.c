#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/translate.h"
#include "cli/queue/queue.h"

static const struct ll_option no_options[] = {LL_OPTION_END};

/* ---- list ---- */

enum { ALL_STATES };
static const char *const states[] = {"all", "running", "starting", "waiting", "paused", "after", NULL};

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
     .help = N_("Jobs in this state alone. starting: it has its cards, and its command has not begun; after: it waits "
		"for the end of another job.")},
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
