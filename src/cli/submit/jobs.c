/* What is done with jobs that were submitted: list, wait, stop, log. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/still.h"
#include "cli/common/table.h"
#include "cli/submit/submit.h"

enum { LOOK_MS = 200, CHUNK = 65536, STATE_SIZE = LL_SUBMIT_TEXT_SIZE + 64 };

int ll_submit_find(const char *word, char ret_folder[PATH_MAX], struct ll_submit_record *ret_record, struct ll_err *err)
{
	uint64_t number = 0;
	int rc = ll_parse_uint(word, 1, UINT64_MAX - 1, &number, err);
	if (rc)
		return ll_err_wrap(err, "job");
	rc = ll_submit_folder(getenv("LOADLINE_SIM_DIR"), ret_folder, err);
	return rc ? rc : ll_submit_read(ret_folder, number, ret_record, err);
}

/* ---- wait ---- */

/* The end of the supervisor wakes this process at once; the record is looked at now and then besides. */
static void pause_for(const struct ll_submit_record *record)
{
	LL_SCOPE_CLOSE int fd = ll_process_open_pidfd(record->supervisor.pid);
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LOOK_MS);
}

/* Waits until the job has ended, or is lost, and reads its record again. deadline_ns: ll_now_ns(); UINT64_MAX: none. */
static int await_end(const char *folder, struct ll_submit_record *record, uint64_t deadline_ns, struct ll_err *err)
{
	int rc = 0;
	while (!rc && record->state < LL_SUBMIT_ENDED && ll_now_ns() < deadline_ns) {
		pause_for(record);
		rc = ll_submit_read(folder, record->number, record, err);
	}
	return rc;
}

static const char *why_lost(const struct ll_submit_record *record)
{
	char boot[LL_BOOT_ID_SIZE];
	ll_boot_id_read(boot);
	return strcmp(boot, record->boot) != 0 ? _("the machine was started anew") : _("its supervisor was killed");
}

static int wait_for_job(const char *word, uint64_t deadline_ns, int *status, struct ll_err *err)
{
	struct ll_still still = {.is_begun = false};
	char folder[PATH_MAX];
	struct ll_submit_record record = {0};
	int rc = ll_submit_find(word, folder, &record, err);
	if (!rc) {
		ll_still_begin(&still, N_("waits for the end of job %" PRIu64), record.number);
		rc = await_end(folder, &record, deadline_ns, err);
	}
	ll_still_end(&still);
	if (!rc && record.state < LL_SUBMIT_ENDED)
		rc = ll_err_set(err, -ETIMEDOUT, "job %" PRIu64 ": has not ended yet", record.number);
	if (rc)
		return rc;
	if (record.state == LL_SUBMIT_LOST)
		ll_log(LL_LOG_WARN, "job %" PRIu64 " is lost: %s", record.number, why_lost(&record));
	else if (record.state == LL_SUBMIT_NOT_RUN)
		ll_log(LL_LOG_WARN, "job %" PRIu64 " was not run: %s", record.number, record.reason);
	int its = record.state == LL_SUBMIT_LOST ? LL_EXIT_FAILED : record.status;
	*status = *status ? *status : its;
	return 0;
}

static int need_jobs(const struct ll_operands *operands, const char *command, struct ll_err *err)
{
	if (operands->count)
		return 0;
	ll_err_set(err, -EINVAL, "submit %s: no job", command);
	return ll_err_hint(err, "`loadline submit list` has your jobs");
}

struct wait_args {
	uint64_t timeout_ns; /* 0: not given */
};

static int run_wait(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct wait_args *args = data;
	uint64_t deadline_ns = args->timeout_ns ? ll_now_ns() + args->timeout_ns : UINT64_MAX;
	int status = 0;
	int rc = need_jobs(operands, "wait", err);
	for (int i = 0; i < operands->count && !rc; i++)
		rc = wait_for_job(operands->words[i], deadline_ns, &status, err);
	return rc ? rc : status;
}

static const struct ll_option wait_options[] = {
    {.name = "timeout",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct wait_args, timeout_ns),
     .min = 1,
     .help = N_("How long to wait for all of them. Without it there is no end.")},
    LL_OPTION_END,
};

const struct ll_command ll_submit_wait = {
    .name = "wait",
    .group = &ll_command_submit,
    .summary = N_("wait for the end of jobs"),
    .operands = "JOB...",
    .description =
	N_("The exit status is that of the first of the jobs, as they are named, which did not end with 0: the "
	   "command's own, or 128 and the number of the signal that ended it. It is 4 for a job that the queue "
	   "refused, and 1 for a lost one, or one that has not ended in the time of --timeout."),
    .options = wait_options,
    .args_size = sizeof(struct wait_args),
    .run = run_wait,
};

/* ---- stop ---- */

struct stop_args {
	uint64_t grace_ns;
};

static const struct ll_option stop_options[] = {
    {.name = "grace",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct stop_args, grace_ns),
     .fallback = "30s",
     .help = N_("How long a job may go on after SIGTERM. Then it gets SIGKILL.")},
    LL_OPTION_END,
};

/* The first process leads the group, and the supervisor waits for it. So while the supervisor lives and the job has no
 * end, nobody else has the number of the group. */
static void signal_group(const struct ll_submit_record *record, int number)
{
	if (record->first.pid > 1)
		kill(-record->first.pid, number);
}

static int stop_job(const char *word, uint64_t grace_ns, struct ll_err *err)
{
	char folder[PATH_MAX];
	struct ll_submit_record record = {0};
	int rc = ll_submit_find(word, folder, &record, err);
	if (rc)
		return rc;
	bool is_lost = record.state == LL_SUBMIT_LOST;
	/* Without its supervisor the first process may live on. */
	bool may_live = record.state < LL_SUBMIT_ENDED || (is_lost && ll_submit_first_lives(&record));
	if (!may_live)
		return ll_err_set(err, -ESRCH, "job %" PRIu64 ": does not run", record.number);
	struct ll_still still;
	ll_still_begin(&still, N_("waits for the end of job %" PRIu64), record.number);
	/* The supervisor passes it on, and starts the job no more. */
	if (is_lost)
		signal_group(&record, SIGTERM);
	else
		kill(record.supervisor.pid, SIGTERM);
	uint64_t deadline_ns = ll_now_ns() + grace_ns;
	while (ll_submit_first_lives(&record) && ll_now_ns() < deadline_ns)
		ll_sleep_until_ns(ll_now_ns() + LOOK_MS * LL_NS_PER_MS / 4);
	if (ll_submit_first_lives(&record))
		signal_group(&record, SIGKILL);
	rc = is_lost ? 0 : await_end(folder, &record, UINT64_MAX, err);
	ll_still_end(&still);
	return rc;
}

static int run_stop(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct stop_args *args = data;
	int rc = need_jobs(operands, "stop", err);
	for (int i = 0; i < operands->count && !rc; i++)
		rc = stop_job(operands->words[i], args->grace_ns, err);
	return rc;
}

const struct ll_command ll_submit_stop = {
    .name = "stop",
    .group = &ll_command_submit,
    .summary = N_("end jobs"),
    .operands = "JOB...",
    .description =
	N_("Sends SIGTERM to the process group of each job, one job after the other, waits for its end, and sends "
	   "SIGKILL after the grace. A waiting job leaves the queue. Processes that have left the group get no "
	   "signal."),
    .options = stop_options,
    .args_size = sizeof(struct stop_args),
    .run = run_stop,
};

/* ---- log ---- */

struct log_args {
	bool follows;
};

static const struct ll_option log_options[] = {
    {.name = "follow",
     .letter = 'f',
     LL_OPTION_FLAG(struct log_args, follows),
     .help = N_("Go on until the job has ended.")},
    LL_OPTION_END,
};

/* Copies what is there now. */
static int copy_rest(int fd, struct ll_err *err)
{
	static char chunk[CHUNK];
	ssize_t length;
	while ((length = read(fd, chunk, sizeof chunk)) > 0) {
		if (fwrite(chunk, 1, (size_t)length, stdout) != (size_t)length)
			return ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
	}
	if (fflush(stdout))
		return ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
	return length < 0 ? ll_err_set(err, -errno, "log: %s", strerror(errno)) : 0;
}

static int follow_log(int fd, const char *folder, struct ll_submit_record *record, struct ll_err *err)
{
	for (;;) {
		/* First the state: what the job printed before its end is then there. */
		bool has_ended = record->state >= LL_SUBMIT_ENDED;
		int rc = copy_rest(fd, err);
		if (rc || has_ended)
			return rc;
		pause_for(record);
		rc = ll_submit_read(folder, record->number, record, err);
		if (rc)
			return rc;
	}
}

static int run_log(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct log_args *args = data;
	char folder[PATH_MAX];
	struct ll_submit_record record = {0};
	int rc = need_jobs(operands, "log", err);
	if (!rc && operands->count > 1)
		rc = ll_err_set(err, -EINVAL, "submit log: one job at a time");
	if (!rc)
		rc = ll_submit_find(operands->words[0], folder, &record, err);
	if (rc)
		return rc;
	LL_SCOPE_CLOSE int fd = open(record.log, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe by now? */
	if (fd < 0)
		return ll_err_set(err, -errno, "%.200s: %s", record.log, strerror(errno));
	return args->follows ? follow_log(fd, folder, &record, err) : copy_rest(fd, err);
}

const struct ll_command ll_submit_log = {
    .name = "log",
    .group = &ll_command_submit,
    .summary = N_("print the output of a job"),
    .operands = "JOB",
    .description = N_("Prints the file that gets the output of the job, from its beginning."),
    .options = log_options,
    .args_size = sizeof(struct log_args),
    .run = run_log,
};

/* ---- list ---- */

struct list_args {
	bool is_json;
};

static const struct ll_option list_options[] = {
    LL_OPTION_JSON(struct list_args, is_json),
    LL_OPTION_END,
};

/* A job as people and scripts read it. */
struct line {
	struct ll_submit_record record;
	const char *word; /* of its state */
	int64_t status;   /* -1: it has none */
	char state[STATE_SIZE];
};

static const struct ll_row_column columns[] = {
    {.heading = N_("job"), .key = "number", LL_ROW_NUMBER(struct line, record.number)},
    {.key = "state", LL_ROW_TEXT(struct line, word)},
    {.heading = N_("state"), LL_ROW_CHARS(struct line, state)},
    {.key = "status", LL_ROW_STATUS(struct line, status)},
    {.key = "restarts", LL_ROW_NUMBER(struct line, record.restarts)},
    {.heading = N_("submitted"), .key = "since", LL_ROW_MOMENT(struct line, record.submitted_s), .may_lack = true},
    {.heading = N_("started"), .key = "start", LL_ROW_MOMENT(struct line, record.started_s), .may_lack = true},
    {.heading = N_("ended"), .key = "end", LL_ROW_MOMENT(struct line, record.ended_s), .may_lack = true},
    {.heading = N_("command"), .key = "command", LL_ROW_CHARS(struct line, record.command)},
    {.key = "directory", LL_ROW_CHARS(struct line, record.directory)},
    {.heading = N_("log"), .key = "log", LL_ROW_CHARS(struct line, record.log)},
    LL_ROW_END,
};

static void make_line(const struct ll_submit_record *record, struct line *line)
{
	bool has_status = record->state == LL_SUBMIT_ENDED || record->state == LL_SUBMIT_NOT_RUN;
	*line = (struct line){
	    .record = *record,
	    .word = ll_submit_state_word(record->state),
	    .status = has_status ? record->status : -1,
	};
	size_t used = (size_t)snprintf(line->state, STATE_SIZE, "%s", _(line->word));
	char *rest = line->state + used;
	if (record->state == LL_SUBMIT_ENDED && record->status)
		snprintf(rest, STATE_SIZE - used, _(", status %d"), record->status);
	if (record->state == LL_SUBMIT_NOT_RUN)
		snprintf(rest, STATE_SIZE - used, ": %s", record->reason);
	if (record->state == LL_SUBMIT_LOST)
		snprintf(rest, STATE_SIZE - used, ": %s", why_lost(record));
}

static int print_lines(const struct ll_submit_record *records, size_t count, bool is_json, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	LL_SCOPE_FREE struct line *lines = calloc(count + 1, sizeof *lines);
	int rc = 0;
	if (!lines)
		return ll_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count && !rc; i++) {
		make_line(&records[i], &lines[i]);
		rc = is_json ? ll_json_line(json_pack("{s:o}", "submitted", ll_row_json(columns, &lines[i])), err) : 0;
	}
	if (rc || is_json)
		return rc;
	ll_rows_add_table(columns, lines, sizeof *lines, count, 0, &out);
	return ll_print_text(&out, err);
}

static int run_list(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct list_args *args = data;
	char folder[PATH_MAX];
	LL_SCOPE_FREE struct ll_submit_record *records = NULL;
	size_t count = 0;
	(void)operands;
	int rc = ll_submit_folder(getenv("LOADLINE_SIM_DIR"), folder, err);
	if (!rc)
		rc = ll_submit_read_all(folder, &records, &count, err);
	return rc ? rc : print_lines(records, count, args->is_json, err);
}

const struct ll_command ll_submit_list = {
    .name = "list",
    .group = &ll_command_submit,
    .summary = N_("show your submitted jobs"),
    .description =
	N_("Shows the jobs that you submitted on this machine, and how they ended. A job is lost if the machine was "
	   "started anew, or if its supervisor was killed before the end of the job.\n\n"
	   "With --json there is one object for each job ({\"submitted\":…}). Moments are seconds since 1970, and "
	   "what is not known is null."),
    .options = list_options,
    .args_size = sizeof(struct list_args),
    .run = run_list,
};
