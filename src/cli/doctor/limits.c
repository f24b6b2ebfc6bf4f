#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/endings.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/limit_trial.h"
#include "cli/doctor/trial_daemon.h"
#include "cli/run/environment.h"
#include "driver/readings.h"

/* PERMILLE_SLACK: the trial lasts half a second, and on a busy host the share measured in so short a time may exceed
 * the cap by up to a tenth of the card. */
enum { DEADLINE_S = 60, OUTPUT_SIZE = 2048, PERMILLE_SLACK = 100 };

static const char limits_check[] = "limits";
static const char memory_check[] = "memory limit";
static const char compute_check[] = "compute limit";
static const char ways_check[] = "ways to the driver";
static const char advice[] = N_("do not rely on `loadline run` here: it does not hold programs to their limits");

struct outcome {
	char text[OUTPUT_SIZE]; /* all that the trial printed, errors included */
	bool is_whole;          /* the trial exited with status 0 */
	bool is_late;
	bool is_stopped; /* a signal asks this program to end */
	bool has_joined; /* the library took a slot of the loadlined that was started for the trial */
};

struct endings {
	sigset_t before; /* the signal mask before; the trial gets it, and this thread gets it back */
	int fd;          /* a signalfd, readable when one of the signals has come; -1: it could not be made */
};

static void __attribute__((format(printf, 4, 5)))
fail_limit(struct ll_doctor *doctor, const struct ll_card *card, const char *check, const char *fmt, ...)
{
	char detail[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, ll_translate(fmt), ap);
	va_end(ap);
	doctor->limit_fails++;
	ll_doctor_say(doctor, LL_FINDING_FAIL, card, check, advice, "%s", detail);
}

/* Blocks the signals that end this program until the trial's folder is removed. */
static void block_endings(struct endings *ret_endings)
{
	static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	ret_endings->fd = ll_endings_block(endings, sizeof endings / sizeof *endings, &ret_endings->before);
}

static int start_trial(char **environment, const sigset_t *mask, int output_fd, pid_t *ret_pid)
{
	static const char *const words[] = {"loadline", LL_TRIAL_WORD, NULL};
	struct ll_child child = {
	    .words = words,
	    .environment = (const char *const *)environment,
	    .in = LL_CHILD_NULL,
	    .out = output_fd,
	    .err = output_fd,
	    .mask = mask,
	};
	return ll_child_start(&child, ret_pid, NULL);
}

/* Reads until the trial closes its output, a signal comes or the time is over. */
static void read_outcome(int fd, int signal_fd, struct outcome *outcome)
{
	uint64_t deadline_ns = ll_now_ns() + DEADLINE_S * LL_NS_PER_S;
	size_t used = 0;
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
		if (now_ns >= deadline_ns) {
			outcome->is_late = true;
			break;
		}
		if (poll(fds, 2, (int)((deadline_ns - now_ns) / LL_NS_PER_MS) + 1) <= 0)
			continue;
		if (fds[1].revents) {
			outcome->is_stopped = true;
			break;
		}
		char rest[256];
		ssize_t n = used < OUTPUT_SIZE - 1 ? read(fd, outcome->text + used, OUTPUT_SIZE - 1 - used)
						   : read(fd, rest, sizeof rest);
		if (n <= 0)
			break;
		if (used < OUTPUT_SIZE - 1)
			used += (size_t)n;
	}
	outcome->text[used] = '\0';
}

static int run_trial(char **environment, const struct endings *endings, struct outcome *outcome)
{
	int pipe_fds[2];
	pid_t pid;
	int status = -1;
	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	int rc = start_trial(environment, &endings->before, pipe_fds[1], &pid);
	close(pipe_fds[1]);
	if (rc == 0) {
		read_outcome(pipe_fds[0], endings->fd, outcome);
		if (outcome->is_late || outcome->is_stopped)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		outcome->is_whole = status == 0;
	}
	close(pipe_fds[0]);
	return rc;
}

/* The trial leaves nothing behind. */
static void remove_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	rmdir(path);
}

static int run_with_daemon(const struct ll_run_settings *settings, const struct ll_card *card, const char *shim,
			   const struct endings *endings, struct outcome *outcome, struct ll_err *err)
{
	char **environment = NULL;
	int rc = ll_run_environment_make(
	    &(struct ll_run_environment){.settings = settings, .shim = shim, .visible = card->uuid}, &environment, err);
	if (rc)
		return rc;
	rc = run_trial(environment, endings, outcome);
	ll_run_environment_free(environment);
	return rc ? ll_err_set(err, rc, "start the trial: %s", strerror(-rc)) : 0;
}

/* Makes the job as `run` does, with a loadlined of its own. */
static int try_in_folder(struct ll_run_settings *settings, const struct ll_card *card, const char *shim,
			 const struct endings *endings, struct outcome *outcome, struct ll_err *err)
{
	struct ll_trial_daemon daemon;
	int rc = ll_trial_daemon_start(&daemon, settings, card, err);
	if (!rc)
		rc = run_with_daemon(settings, card, shim, endings, outcome, err);
	if (!rc)
		outcome->has_joined = ll_trial_daemon_has_charged(&daemon);
	ll_trial_daemon_end(&daemon);
	return rc;
}

static int make_folder(char ret_folder[LL_FOLDER_SIZE], struct ll_err *err)
{
	const char *temporary = getenv("TMPDIR");
	int length = snprintf(ret_folder, LL_FOLDER_SIZE, "%s/loadline-doctor-XXXXXX",
			      temporary && *temporary ? temporary : "/tmp");
	if (length >= LL_FOLDER_SIZE)
		return ll_err_set(err, -ENAMETOOLONG, "TMPDIR: %s", strerror(ENAMETOOLONG));
	return mkdtemp(ret_folder) ? 0 : ll_err_set(err, -errno, "%s: %s", ret_folder, strerror(errno));
}

static int try_limits(const struct ll_card *card, const char *shim, struct outcome *outcome, struct ll_err *err)
{
	struct ll_run_settings settings = {
	    .id = (uint64_t)getpid(),
	    .tenant = "doctor",
	    .priority = LL_PRIORITY_NORMAL,
	    .memory_limit_bytes = LL_TRIAL_MEMORY_BYTES,
	    .compute_cap_permille = LL_TRIAL_CAP_PERMILLE,
	    .weight_permille = 1000,
	};
	struct endings endings;
	block_endings(&endings);
	int rc = make_folder(settings.folder, err);
	if (!rc) {
		rc = try_in_folder(&settings, card, shim, &endings, outcome, err);
		remove_folder(settings.folder);
	}
	if (endings.fd >= 0)
		close(endings.fd);
	/* A blocked signal that has come takes effect here. */
	pthread_sigmask(SIG_SETMASK, &endings.before, NULL);
	return rc;
}

/* Finds the line that begins with word, and returns the number after it. -1: there is no such line. */
static long find_number(const char *text, const char *word)
{
	size_t length = strlen(word);
	for (const char *line = text; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
		if (strncmp(line, word, length) == 0 && line[length] == ' ')
			return strtol(line + length, NULL, 10);
	}
	return -1;
}

static void say_memory(struct ll_doctor *doctor, const struct ll_card *card, long refused_bytes)
{
	const int mib = 1 << 20;
	if (refused_bytes > 0)
		ll_doctor_say(doctor, LL_FINDING_OK, card, memory_check, NULL,
			      "in force: a program with a limit of %d MiB was refused %ld MiB after it had %d MiB",
			      LL_TRIAL_MEMORY_BYTES / mib, refused_bytes / mib, LL_TRIAL_FIRST_BYTES / mib);
	else
		fail_limit(doctor, card, memory_check, "not in force: a program with a limit of %d MiB got %d MiB",
			   LL_TRIAL_MEMORY_BYTES / mib, (LL_TRIAL_FIRST_BYTES + LL_TRIAL_SECOND_BYTES) / mib);
}

static void say_compute(struct ll_doctor *doctor, const struct ll_card *card, long permille)
{
	double percent = (double)permille / 10;
	if (permille <= LL_TRIAL_CAP_PERMILLE + PERMILLE_SLACK)
		ll_doctor_say(doctor, LL_FINDING_OK, card, compute_check, NULL,
			      "in force: kernels of a program with a cap of %d %% ran %.0f %% of the time",
			      LL_TRIAL_CAP_PERMILLE / 10, percent);
	else
		fail_limit(doctor, card, compute_check,
			   "not in force: kernels of a program with a cap of %d %% ran %.0f %% of the time",
			   LL_TRIAL_CAP_PERMILLE / 10, percent);
}

/* Adds the names on the lines that begin with the word, and for "way" whose number is 0, or is not. */
static void add_names(struct ll_strbuf *names, const char *text, const char *word, bool is_refused)
{
	size_t length = strlen(word);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, word, length) != 0)
			continue;
		char *name = (char *)line + length;
		bool fits = strtol(name, &name, 10) > 0 ? is_refused : !is_refused;
		if (fits)
			ll_strbuf_addf(names, "%s%.*s", names->length ? ", " : "", (int)strcspn(name + 1, "\n"),
				       name + 1);
	}
}

static void say_ways(struct ll_doctor *doctor, const struct ll_card *card, const char *text)
{
	LL_SCOPE_STRBUF struct ll_strbuf held = LL_STRBUF_INIT, past = LL_STRBUF_INIT, untried = LL_STRBUF_INIT;
	add_names(&held, text, "way", true);
	add_names(&past, text, "way", false);
	add_names(&untried, text, "untried", false);
	if (past.length)
		fail_limit(doctor, card, ways_check, "programs get past a memory limit by %s", past.buf);
	else if (held.length)
		ll_doctor_say(doctor, untried.length ? LL_FINDING_WARN : LL_FINDING_OK, card, ways_check, NULL,
			      "a memory limit is in force by %s%s%s", held.buf,
			      untried.length ? _("; not tried: ") : "", untried.buf);
}

static void say_library(struct ll_doctor *doctor, const struct ll_card *card, const char *shim)
{
	doctor->limit_fails++;
	ll_doctor_say(doctor, LL_FINDING_FAIL, card, limits_check,
		      N_("install all of loadline, and unset LOADLINE_SHIM"),
		      "%.300s took no claim: the library and this program have different versions", shim);
}

/* The trial ended before it tried the limit. The advice is the one in its error. */
static void say_failed(struct ll_doctor *doctor, const struct ll_card *card, const char *check, struct outcome *outcome)
{
	char *why = strstr(outcome->text, "loadline: ");
	why = why ? why + strlen("loadline: ") : outcome->text;
	why[strcspn(why, "\n")] = '\0';
	char *todo = strstr(why, "; ");
	if (todo)
		*todo = '\0';
	doctor->limit_fails++;
	doctor->untried++;
	ll_doctor_say(doctor, LL_FINDING_FAIL, card, check, todo ? todo + 2 : NULL, "the trial %s%s%s",
		      outcome->is_late ? _("hangs") : _("failed"), *why ? ": " : "", why);
}

static void say_outcome(struct ll_doctor *doctor, const struct ll_card *card, const char *shim, struct outcome *outcome)
{
	long refused_bytes = find_number(outcome->text, "memory");
	long permille = find_number(outcome->text, "compute");
	if (refused_bytes >= 0)
		say_memory(doctor, card, refused_bytes);
	if (permille >= 0)
		say_compute(doctor, card, permille);
	if (refused_bytes >= 0)
		say_ways(doctor, card, outcome->text);
	if (permille >= 0 && !outcome->has_joined)
		say_library(doctor, card, shim);
	if (refused_bytes >= 0 && permille >= 0)
		return;
	say_failed(doctor, card, refused_bytes < 0 ? memory_check : compute_check, outcome);
}

/* The trial is skipped if its context would be refused, or would lock other programs out. */
static const char *reason_to_skip(const struct ll_doctor *doctor, const struct ll_card *card)
{
	enum ll_compute_mode mode;
	ll_cu_device device;
	if (doctor->is_refusing)
		return _("`loadline run` refuses, so no program was started");
	if (ll_read_compute_mode(card, &mode, NULL) == 0 && mode != LL_MODE_DEFAULT)
		return _("the card's compute mode allows one program at most");
	/* The trial's CUDA_VISIBLE_DEVICES names its slice alone. If the variable is not set here, it does not matter
	 * which slice CUDA shows to this process. */
	bool is_hidden = card->is_mig ? getenv("CUDA_VISIBLE_DEVICES") != NULL : true;
	if (is_hidden && ll_card_cuda_device(card, NULL, &device, NULL) < 0)
		return _("CUDA does not show the card");
	return NULL;
}

void ll_doctor_check_limits(struct ll_doctor *doctor, const struct ll_card *card)
{
	char shim[PATH_MAX];
	struct outcome outcome = {0};
	struct ll_err err = {0};
	if (card->fault || card->has_slices)
		return;
	const char *reason = reason_to_skip(doctor, card);
	if (reason)
		ll_doctor_say(doctor, LL_FINDING_OK, card, limits_check, NULL, "skipped: %s", reason);
	else if (ll_run_find_shim(shim, &err) < 0) {
		doctor->limit_fails++;
		ll_doctor_say_err(doctor, LL_FINDING_FAIL, card, limits_check, &err);
	} else if (try_limits(card, shim, &outcome, &err) < 0)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, card, limits_check, &err);
	else
		say_outcome(doctor, card, shim, &outcome);
}
