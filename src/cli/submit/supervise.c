#include "cli/submit/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/options/program.h"
#include "cli/run/run.h"
#include "protocol/client.h"

/* What the first process tells the supervisor, and the supervisor the starter. */
enum note_kind { NOTE_NUMBER, NOTE_START, NOTE_FAILURE };

struct note {
	enum note_kind kind;
	int status;
	bool is_queued;
	uint64_t number, job;
	struct ll_process_id first;
	char log[PATH_MAX];
	char reason[LL_SUBMIT_TEXT_SIZE];
};

static void send_note(int fd, const struct note *note)
{
	while (send(fd, note, sizeof *note, MSG_NOSIGNAL) < 0 && errno == EINTR)
		continue;
}

/* Returns false at the end of the connection. */
static bool receive_note(int fd, struct note *ret_note)
{
	ssize_t length;
	do {
		length = recv(fd, ret_note, sizeof *ret_note, 0);
	} while (length < 0 && errno == EINTR);
	return length == (ssize_t)sizeof *ret_note;
}

/* ---- the log ---- */

static int add_output(struct ll_strbuf *path, const char *output, uint64_t number)
{
	for (; *output; output++) {
		if (*output != '%') {
			ll_strbuf_addc(path, *output);
			continue;
		}
		output++;
		if (*output == 'j')
			ll_strbuf_addf(path, "%" PRIu64, number);
		else if (*output == '%')
			ll_strbuf_addc(path, '%');
		else
			return -EINVAL;
	}
	return 0;
}

int ll_submit_log_path(const char *output, uint64_t number, const char *directory, char ret_path[PATH_MAX])
{
	LL_SCOPE_STRBUF struct ll_strbuf path = LL_STRBUF_INIT;
	if (*output != '/')
		ll_strbuf_addf(&path, "%s/", directory);
	int rc = add_output(&path, output, number);
	if (rc)
		return rc;
	if (path.failed || path.length >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_path, path.buf, path.length + 1);
	return 0;
}

/* ---- the first process ---- */

struct first {
	const struct ll_submit_job *job;
	const struct ll_submit_record *former; /* of a job that is started again; NULL: it is new */
	int fd;                                /* to the supervisor */
	uint64_t number;
};

static void fail_first(const struct first *first, const struct ll_err *err)
{
	struct note note = {.kind = NOTE_FAILURE, .status = ll_program_print_error(err)};
	snprintf(note.reason, sizeof note.reason, "%s", err->text);
	send_note(first->fd, &note);
	_exit(note.status);
}

/* A name such as loadline-12.out is easily guessed, and in a shared folder others may have put something there: a link
 * to another of the user's files, a pipe that nobody reads, a file that they own. */
static bool may_be_log(const struct stat *st)
{
	enum { MEM_MAJOR = 1, NULL_MINOR = 3 };
	return (S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1) ||
	       (S_ISCHR(st->st_mode) && st->st_rdev == makedev(MEM_MAJOR, NULL_MINOR));
}

/* Opens a file that was there before, and empties it for a new job. Returns the descriptor, or a negative errno. */
static int open_former_log(const char *path, bool is_new)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -EPERM : -errno;
	int code = fstat(fd, &st) ? errno : may_be_log(&st) ? 0 : EPERM;
	if (!code && (fcntl(fd, F_SETFL, O_APPEND) || (is_new && S_ISREG(st.st_mode) && ftruncate(fd, 0))))
		code = errno;
	if (code)
		close(fd);
	return code ? -code : fd;
}

static int open_log(const char *path, bool is_new, struct ll_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		fd = errno == EEXIST ? open_former_log(path, is_new) : -errno;
	if (fd == -EPERM) {
		ll_err_set(err, fd, "--output: %.200s: what lies there is no plain file of your own", path);
		return ll_err_hint(err, "remove it, or name another file with -o");
	}
	if (fd < 0)
		return ll_err_set(err, fd, "--output: %.200s: %s", path, strerror(-fd));
	fflush(stderr);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	return 0;
}

static void announce(struct first *first, uint64_t number, uint64_t job, bool is_queued)
{
	struct ll_err err = {0};
	char directory[PATH_MAX];
	struct note note = {.kind = NOTE_NUMBER, .job = job, .is_queued = is_queued, .first = ll_process_self()};
	int rc = 0;
	if (first->former) /* also where loadlined has forgotten it */
		number = first->former->number;
	else if (!number)
		rc = ll_submit_take_number(first->job->folder, &number, &err);
	if (!rc && !getcwd(directory, sizeof directory))
		rc = ll_err_set(&err, -errno, "working directory: %s", strerror(errno));
	if (!rc && first->former)
		memcpy(note.log, first->former->log, sizeof note.log);
	else if (!rc && (rc = ll_submit_log_path(first->job->output, number, directory, note.log)))
		ll_err_set(&err, rc, "--output: %.200s: %s", first->job->output, strerror(-rc));
	if (!rc && !first->former)
		rc = open_log(note.log, true, &err);
	if (rc)
		fail_first(first, &err);
	first->number = note.number = number;
	send_note(first->fd, &note);
}

static void on_number(void *data, uint64_t number, uint64_t job)
{
	struct first *first = data;
	if (!first->number)
		announce(first, number, job, true);
}

static void on_start(void *data, uint64_t job)
{
	struct first *first = data;
	if (!first->number)
		announce(first, 0, job, false);
	send_note(first->fd, &(struct note){.kind = NOTE_START});
}

/* The exit status says which of them the policy of the machine refuses; `run` has 125 for all. */
static void choose_status(struct ll_err *err)
{
	bool is_refused =
	    err->code == -EACCES || err->code == -EAGAIN || err->code == -ECANCELED || err->code == -EDQUOT;
	if (!err->status && is_refused)
		ll_err_exit_with(err, LL_EXIT_REFUSED);
}

static void reset_signals(void)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD};
	sigset_t none;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		signal(numbers[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Goes on with the log of the job. What it waited for before its first start it does not wait for again. */
static int begin_again(const struct ll_submit_record *former, struct ll_run_args *args, struct ll_err *err)
{
	char count[16];
	int rc = open_log(former->log, false, err);
	if (rc)
		return rc;
	snprintf(count, sizeof count, "%u", former->restarts);
	if (setenv("LOADLINE_RESTART_COUNT", count, 1))
		return ll_err_set(err, -ENOMEM, "environment: %s", strerror(ENOMEM));
	args->again = former->number;
	args->after = args->after_ok = args->wait_ns = 0;
	args->no_wait = false;
	ll_log(LL_LOG_INFO, "job %" PRIu64 " is in the queue again: its room was lent (restart %s)", former->number,
	       count);
	return 0;
}

__attribute__((noreturn)) static void become_command(const struct ll_submit_job *job,
						     const struct ll_submit_record *former, int fd)
{
	struct first first = {.job = job, .former = former, .fd = fd};
	const struct ll_run_watch watch = {.data = &first, .on_number = on_number, .on_start = on_start};
	struct ll_run_args args = *job->args;
	struct ll_err err = {0};
	setpgid(0, 0);
	reset_signals();
	args.watch = &watch;
	unsetenv("LOADLINE_RESTART_COUNT"); /* of a job around it */
	if (former && begin_again(former, &args, &err))
		fail_first(&first, &err);
	ll_run_start(&args, job->operands, &err);
	choose_status(&err);
	fail_first(&first, &err);
	_exit(LL_EXIT_FAILED);
}

/* ---- the supervisor ---- */

struct supervisor {
	const struct ll_submit_job *job;
	int starter_fd; /* -1: the starter knows */
	struct ll_submit_record record;
	bool has_started, has_failed;
};

static volatile sig_atomic_t first_group, is_to_end;

/* Whoever ends the supervisor means the job. The signal is blocked while there is no group to pass it to yet. */
static void pass_signal(int number)
{
	int code = errno;
	is_to_end = true;
	if (first_group > 0)
		kill(-(pid_t)first_group, number);
	errno = code;
}

static void take_signals(void)
{
	struct sigaction action = {.sa_handler = pass_signal, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

static void open_null(int first_fd, int last_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = first_fd; null >= 0 && fd <= last_fd; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

static uint64_t seconds_now(void)
{
	return (uint64_t)time(NULL);
}

/* A record that cannot be written, on a full disk, must not end the job. */
static void write_record(const struct supervisor *supervisor)
{
	if (supervisor->record.number)
		ll_submit_write(supervisor->job->folder, &supervisor->record, NULL);
}

static void tell_starter(struct supervisor *supervisor, const struct note *note)
{
	if (supervisor->starter_fd < 0)
		return;
	send_note(supervisor->starter_fd, note);
	close(supervisor->starter_fd);
	supervisor->starter_fd = -1;
}

static void take_note(struct supervisor *supervisor, const struct note *note)
{
	struct ll_submit_record *record = &supervisor->record;
	switch (note->kind) {
	case NOTE_NUMBER:
		record->number = note->number;
		record->job = note->job;
		record->is_queued = note->is_queued;
		record->first = note->first;
		memcpy(record->log, note->log, sizeof record->log);
		write_record(supervisor);
		tell_starter(supervisor, note);
		break;
	case NOTE_START:
		supervisor->has_started = true;
		record->state = LL_SUBMIT_RUNS;
		record->started_s = seconds_now();
		write_record(supervisor);
		break;
	case NOTE_FAILURE:
		supervisor->has_failed = true;
		record->status = note->status;
		memcpy(record->reason, note->reason, sizeof record->reason);
		break;
	}
}

static void describe_job(struct supervisor *supervisor)
{
	LL_SCOPE_STRBUF struct ll_strbuf command = LL_STRBUF_INIT;
	struct ll_submit_record *record = &supervisor->record;
	const struct ll_operands *operands = supervisor->job->operands;
	for (int i = 0; i < operands->count; i++)
		ll_strbuf_addf(&command, "%s%s", i ? " " : "", operands->words[i]);
	snprintf(record->command, sizeof record->command, "%s", command.failed ? "" : command.buf);
	if (!getcwd(record->directory, sizeof record->directory))
		record->directory[0] = '\0';
	ll_boot_id_read(record->boot);
	record->supervisor = ll_process_self();
	record->submitted_s = seconds_now();
}

/* The command has ended, or was not started. Returns whether the queue wants it to be started again. */
static bool note_end(struct supervisor *supervisor, int status)
{
	struct ll_submit_record *record = &supervisor->record;
	enum { SIGNAL_STATUS = 128 };
	bool has_ended = supervisor->has_started && !supervisor->has_failed;
	if (record->is_queued && supervisor->has_started && ll_submit_tell_status(record->job, (uint32_t)status) &&
	    has_ended && !is_to_end) {
		supervisor->has_started = false;
		record->state = LL_SUBMIT_WAITS;
		record->started_s = 0;
		record->restarts++;
		write_record(supervisor);
		return true;
	}
	int as_shell = WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
	record->ended_s = seconds_now();
	record->state = has_ended ? LL_SUBMIT_ENDED : LL_SUBMIT_NOT_RUN;
	if (!supervisor->has_failed)
		record->status = as_shell;
	if (record->state == LL_SUBMIT_NOT_RUN && !supervisor->has_failed)
		snprintf(record->reason, sizeof record->reason, "it was ended while it waited");
	write_record(supervisor);
	tell_starter(supervisor, &(struct note){.kind = NOTE_FAILURE, .status = record->status});
	return false;
}

static bool watch_first(struct supervisor *supervisor, pid_t first, int fd)
{
	struct note note;
	int status = 0;
	while (receive_note(fd, &note))
		take_note(supervisor, &note);
	close(fd);
	while (waitid(P_PID, (id_t)first, &(siginfo_t){0}, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		continue;
	first_group = 0; /* from here on another group may get its number */
	while (waitpid(first, &status, 0) < 0 && errno == EINTR)
		continue;
	return note_end(supervisor, status);
}

/* Starts the first process, and waits for its end. Returns whether it is to be started again. */
static bool run_first(struct supervisor *supervisor)
{
	bool is_again = supervisor->record.restarts;
	int ends[2];
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (is_to_end)
		return note_end(supervisor, SIGTERM);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		_exit(LL_EXIT_FAILED);
	pid_t first = fork();
	if (first < 0)
		_exit(LL_EXIT_FAILED);
	if (first == 0) {
		close(ends[0]);
		if (supervisor->starter_fd >= 0)
			close(supervisor->starter_fd);
		become_command(supervisor->job, is_again ? &supervisor->record : NULL, ends[1]);
	}
	setpgid(first, first);
	first_group = first;
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	close(ends[1]);
	if (!is_again)
		open_null(STDERR_FILENO, STDERR_FILENO);
	return watch_first(supervisor, first, ends[0]);
}

__attribute__((noreturn)) static void supervise(const struct ll_submit_job *job, int starter_fd)
{
	struct supervisor supervisor = {.job = job, .starter_fd = starter_fd};
	open_null(STDIN_FILENO, STDOUT_FILENO);
	take_signals();
	describe_job(&supervisor);
	while (run_first(&supervisor))
		continue;
	_exit(LL_EXIT_OK);
}

/* ---- the starter ---- */

/* The supervisor leads no session, so that it never gets a terminal. It keeps no descriptors of the starter. */
__attribute__((noreturn)) static void detach_supervisor(const struct ll_submit_job *job, int fd)
{
	enum { KEPT_FD = 3 };
	setsid();
	pid_t supervisor = fork();
	if (supervisor)
		_exit(supervisor < 0 ? LL_EXIT_FAILED : LL_EXIT_OK);
	if (fd != KEPT_FD)
		dup2(fd, KEPT_FD);
	fcntl(KEPT_FD, F_SETFD, FD_CLOEXEC);
	ll_close_from_now(KEPT_FD + 1);
	supervise(job, KEPT_FD);
}

int ll_submit_start(const struct ll_submit_job *job, struct ll_submit_started *ret_started, struct ll_err *err)
{
	int ends[2];
	struct note note;
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return ll_err_set(err, -errno, "socket: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0)
		detach_supervisor(job, ends[1]);
	int code = errno;
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return ll_err_set(err, -code, "fork: %s", strerror(code));
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
	bool is_told = receive_note(ends[0], &note);
	close(ends[0]);
	if (!is_told)
		return ll_err_set(err, -EPIPE, "the job's supervisor has ended");
	*ret_started =
	    (struct ll_submit_started){.number = note.kind == NOTE_NUMBER ? note.number : 0, .status = note.status};
	memcpy(ret_started->log, note.log, sizeof ret_started->log);
	return 0;
}

#define TRY_NS (10 * LL_NS_PER_S)
#define PAUSE_NS (LL_NS_PER_S / 2)

static int tell_once(uint64_t job, uint32_t status, bool *ret_comes_again)
{
	struct ll_client client = {.fd = -1};
	struct ll_place place;
	union ll_message message, reply;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	int rc = ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, NULL);
	if (!rc && !ll_place_is_system(&place))
		rc = -ECONNREFUSED;
	if (!rc)
		rc = ll_client_open(&client, &place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	ll_message_init(&message, LL_MESSAGE_JOB_STATUS);
	message.job_status.job = job;
	message.job_status.status = status;
	if (!rc)
		rc = ll_client_request(&client, &message, NULL, 0, &reply, deadline_ns, NULL);
	if (!rc)
		*ret_comes_again = reply.header.kind == LL_MESSAGE_ACCEPTED && reply.accepted.number;
	ll_client_close(&client);
	return rc;
}

bool ll_submit_tell_status(uint64_t job, uint32_t status)
{
	uint64_t end_ns = ll_now_ns() + TRY_NS;
	bool comes_again = false;
	int rc;
	while ((rc = tell_once(job, status, &comes_again)) && (rc == -ECONNREFUSED || ll_client_is_lost(rc)) &&
	       ll_now_ns() < end_ns)
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	return comes_again;
}

bool ll_submit_is_in_session(const char *cgroup)
{
	const char *session = strstr(cgroup, "/session-");
	return session && strstr(session, ".scope");
}

bool ll_submit_dies_at_logout(void)
{
	char cgroup[PATH_MAX], answer[16] = "";
	if (ll_cgroup_read(0, cgroup, sizeof cgroup) || !ll_submit_is_in_session(cgroup) ||
	    access("/run/systemd/system", F_OK))
		return false;
	FILE *bus = popen("busctl get-property org.freedesktop.login1 /org/freedesktop/login1 "
			  "org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null",
			  "re");
	if (!bus)
		return false;
	bool is_read = fgets(answer, sizeof answer, bus);
	pclose(bus);
	return is_read && strncmp(answer, "b true", strlen("b true")) == 0;
}
