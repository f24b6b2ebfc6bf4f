/* What the keys of `loadline top` change. Each is done by the function of the command that does it elsewhere. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/options/command.h"
#include "cli/options/program.h"
#include "cli/queue/queue.h"
#include "cli/top/top.h"

enum { WORDS_MOST = 24, NAME_SIZE = 160, SAID_SIZE = 4096 };

/* ---- what is asked before ---- */

static void write_name(const struct ll_top_row *row, char ret_name[NAME_SIZE])
{
	if (row->kind == LL_TOP_PROCESS || row->kind == LL_TOP_STRANGER)
		snprintf(ret_name, NAME_SIZE, _("process %d"), (int)row->pid);
	else if (row->kind == LL_TOP_HOLD)
		snprintf(ret_name, NAME_SIZE, _("the synthetic load %s"), row->claim);
	else
		snprintf(ret_name, NAME_SIZE, _("job %llu of %s"), (unsigned long long)row->number, row->tenant);
}

/* Why that cannot be done with such a row, or NULL. */
static const char *find_obstacle(const struct ll_top_row *row, enum ll_top_act act)
{
	if (act == LL_TOP_KILL)
		return row->is_queued || row->pid ? NULL : N_("its process is not seen here");
	if (row->kind == LL_TOP_HOLD)
		return N_("a synthetic load has no limits, and gives way by itself");
	if (row->kind == LL_TOP_STRANGER)
		return N_("loadline does not govern it; start it with `loadline run`");
	if (act == LL_TOP_EVICT && row->kind == LL_TOP_WAITING)
		return N_("it has no memory on a card");
	if (act == LL_TOP_SET && row->kind == LL_TOP_PROCESS)
		return N_("limits are those of the job");
	return act != LL_TOP_SET && row->kind == LL_TOP_JOB && !row->processes ? N_("it is on no card") : NULL;
}

bool ll_top_question(const struct ll_top_row *row, enum ll_top_act act, const char *words, char *ret_text, size_t size)
{
	char name[NAME_SIZE];
	const char *obstacle = find_obstacle(row, act);
	bool is_waiting = row->kind == LL_TOP_WAITING;
	write_name(row, name);
	if (obstacle)
		snprintf(ret_text, size, "%s: %s", name, _(obstacle));
	else if (act == LL_TOP_SET)
		snprintf(ret_text, size, _("set %s: %s?"), name, words);
	else if (act == LL_TOP_EVICT)
		snprintf(ret_text, size, row->is_evicted ? _("resume %s?") : _("evict the memory of %s?"), name);
	else if (act == LL_TOP_PAUSE && is_waiting)
		snprintf(ret_text, size, row->is_paused ? _("let %s start again?") : _("keep %s from starting?"), name);
	else if (act == LL_TOP_PAUSE)
		snprintf(ret_text, size, row->is_paused || row->is_evicted ? _("resume %s?") : _("suspend %s?"), name);
	else if (row->is_queued)
		snprintf(ret_text, size, is_waiting ? _("take %s out of the queue?") : _("stop %s, as the queue does?"),
			 name);
	else
		snprintf(ret_text, size, _("end %s: SIGTERM to process %d?"), name, (int)row->pid);
	return !obstacle;
}

/* ---- commands ---- */

/* Runs the command, and writes what it prints, or its error. Standard output and error are a file meanwhile: the
 * terminal shows a frame. */
static void run_command(const struct ll_command *command, int argc, char **argv, char *ret_text, size_t size)
{
	struct ll_err err = {0};
	char said[SAID_SIZE] = "";
	LL_SCOPE_CLOSE int file = memfd_create("said", MFD_CLOEXEC);
	LL_SCOPE_CLOSE int out = dup(STDOUT_FILENO);
	LL_SCOPE_CLOSE int error = dup(STDERR_FILENO);
	if (file < 0 || out < 0 || error < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) {
		snprintf(ret_text, size, "%s: %s", argv[0], strerror(errno));
		return;
	}
	int rc = ll_program_run_command(command, argc, argv, &err);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(error, STDERR_FILENO);
	ssize_t length = pread(file, said, sizeof said - 1, 0);
	/* The last line: what stands before tells how far it was. */
	while (length > 0 && said[length - 1] == '\n')
		said[--length] = '\0';
	const char *last = strrchr(said, '\n') ? strrchr(said, '\n') + 1 : said;
	if (rc < 0)
		snprintf(ret_text, size, "%s%s%s", err.text, err.hint[0] ? "; " : "", err.hint);
	else
		snprintf(ret_text, size, "%s", *last ? last : _("done"));
}

static const struct ll_command *command_of(const struct ll_top_row *row, enum ll_top_act act)
{
	if (act == LL_TOP_SET)
		return &ll_command_set;
	if (act == LL_TOP_KILL)
		return &ll_queue_cancel;
	if (row->kind == LL_TOP_WAITING)
		return row->is_paused ? &ll_queue_release : &ll_queue_pause;
	if (row->is_evicted || (act == LL_TOP_PAUSE && row->is_paused))
		return &ll_command_resume;
	return act == LL_TOP_EVICT ? &ll_command_evict : &ll_command_suspend;
}

/* ---- signals ---- */

/* The process is the one that was shown: a number may be another one's by now. */
static int end_process(const struct ll_top_row *row, struct ll_err *err)
{
	struct ll_process_stat stat;
	LL_SCOPE_CLOSE int fd = ll_process_open_pidfd(row->pid);
	if (ll_process_stat_of(row->pid, &stat) || stat.start_ticks != row->start_ticks)
		return ll_err_set(err, -ESRCH, "process %d: has ended", (int)row->pid);
	if ((fd < 0 ? kill(row->pid, SIGTERM) : (int)syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0)) == 0)
		return 0;
	return ll_err_set(err, -errno, "process %d: %s", (int)row->pid, strerror(errno));
}

void ll_top_do(const struct ll_top_row *row, enum ll_top_act act, const char *words, char *ret_text, size_t size)
{
	struct ll_err err = {0};
	char text[WORDS_MOST * 16], subject[LL_STATUS_NUMBER_SIZE], *argv[WORDS_MOST + 4], *rest = text;
	int argc = 0;
	if (act == LL_TOP_KILL && !row->is_queued) {
		snprintf(ret_text, size, "%s", end_process(row, &err) ? err.text : _("SIGTERM was sent"));
		return;
	}
	const struct ll_command *command = command_of(row, act);
	if (row->kind == LL_TOP_PROCESS)
		snprintf(subject, sizeof subject, "%s", row->claim);
	else
		snprintf(subject, sizeof subject, "%llu", (unsigned long long)(row->number));
	snprintf(text, sizeof text, "%s", words);
	argv[argc++] = (char *)(uintptr_t)command->name;
	for (char *word; argc < WORDS_MOST && (word = strsep(&rest, " "));) {
		if (*word)
			argv[argc++] = word;
	}
	/* `resume` has no end of its own. */
	char timeout[] = "--timeout=10s";
	if (command == &ll_command_resume)
		argv[argc++] = timeout;
	argv[argc++] = subject;
	argv[argc] = NULL;
	run_command(command, argc, argv, ret_text, size);
	ll_utf8_mend(ret_text);
}
