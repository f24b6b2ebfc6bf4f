#include "cli/trace/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "cli/common/env_sim.h"
#include "cli/run/preload.h"
#include "cli/run/program.h"
#include "cli/trace/sample.h"
#include "trace/record.h"

/* From the program loadline-trace: installed, in a build folder, and in a folder that has loadline itself. */
static const char *const places[] = {".", "../trace", "src/trace", NULL};
static const struct ll_preload_library library = {"libloadline-trace.so", "LOADLINE_TRACE_LIBRARY", places};

static const char *const events_places[] = {".", "../trace/preload", "src/trace/preload", NULL};
static const struct ll_preload_library events_library = {"libloadline-events.so", "LOADLINE_EVENTS_LIBRARY",
							 events_places};

int ll_trace_find_library(char ret_path[PATH_MAX], struct ll_err *err)
{
	return ll_preload_find(&library, ret_path, err);
}

int ll_trace_find_events_library(char ret_path[PATH_MAX], struct ll_err *err)
{
	return ll_preload_find(&events_library, ret_path, err);
}

/* Adds the libraries to LD_PRELOAD: libloadline-trace.so after those already there, and libloadline-events.so last,
 * because libraries in front of the driver pass calls on to the next one.
 */
static int set_preload(const struct ll_trace_how *how)
{
	LL_SCOPE_FREE char *list = ll_preload_append(getenv("LD_PRELOAD"), how->library);
	LL_SCOPE_FREE char *with_events = list && *how->events ? ll_preload_append(list, how->events) : NULL;
	if (!list || (*how->events && !with_events))
		return -1;
	return setenv("LD_PRELOAD", with_events ? with_events : list, 1);
}

/* Runs in the child. */
static int set_environment(const struct ll_trace_how *how)
{
	static const char *const words[] = {"auto", "cupti", "events"};
	char most[32];
	snprintf(most, sizeof most, "%" PRIu64, how->most_events);
	if (!how->is_preloaded)
		ll_sim_leave_kernel();
	if (setenv(LL_TRACE_FOLDER, how->folder, 1) || setenv(LL_TRACE_BY, words[how->by], 1) ||
	    setenv(LL_TRACE_CUPTI, how->cupti, 1) || setenv(LL_TRACE_MOST, most, 1) ||
	    (how->is_preloaded && set_preload(how)))
		return -1;
	return how->by == LL_TRACE_BY_EVENTS ? 0 : setenv(LL_TRACE_INJECTION, how->library, 1);
}

/* Executes the command in the child. On failure the child writes exec's errno into the pipe, which closes when exec
 * succeeds. */
static void exec_command(const struct ll_trace_how *how, const char *path, char **words, const sigset_t *mask, int tell)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (set_environment(how) == 0)
		execvp(path, words);
	int code = errno;
	ssize_t n = write(tell, &code, sizeof code);
	(void)n;
	_exit(LL_RUN_NOT_EXECUTABLE);
}

static int start_command(const struct ll_trace_how *how, const char *path, char **words, const sigset_t *mask,
			 pid_t *ret_pid, struct ll_err *err)
{
	int ends[2], code = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		exec_command(how, path, words, mask, ends[1]);
	int fork_code = errno;
	close(ends[1]);
	ssize_t n = pid > 0 ? read(ends[0], &code, sizeof code) : 0;
	close(ends[0]);
	if (pid < 0)
		return ll_err_set(err, -fork_code, "fork: %s", strerror(fork_code));
	if (n != (ssize_t)sizeof code) {
		*ret_pid = pid;
		return 0;
	}
	waitpid(pid, NULL, 0);
	ll_err_set(err, -code, "%.200s: %s", path, strerror(code));
	if (err)
		err->status = code == ENOENT ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

/* Passes a signal on to the command. A signal from the terminal went to the whole foreground group, so the command has
 * it already. */
static void pass_on(const siginfo_t *info, pid_t pid)
{
	bool is_from_terminal = (info->si_signo == SIGINT || info->si_signo == SIGQUIT) && info->si_code == SI_KERNEL;
	if (!is_from_terminal)
		kill(pid, info->si_signo);
}

/* Waits for ended children, which include orphans of the command. Returns true if the command itself has ended. */
static bool reap_children(pid_t pid, int *ret_status)
{
	bool has_ended = false;
	int status;
	for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
		if (ended != pid)
			continue;
		has_ended = true;
		*ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	return has_ended;
}

static void watch_command(pid_t pid, const sigset_t *signals, struct ll_sampler *sampler, int *ret_status)
{
	for (;;) {
		siginfo_t info;
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= sampler->next_ns)
			ll_sampler_look(sampler);
		now_ns = ll_now_ns();
		uint64_t rest_ns = sampler->next_ns > now_ns ? sampler->next_ns - now_ns : 0;
		struct timespec rest = {(time_t)(rest_ns / LL_NS_PER_S), (long)(rest_ns % LL_NS_PER_S)};
		int signal = sigtimedwait(signals, &info, &rest);
		if (signal > 0 && signal != SIGCHLD)
			pass_on(&info, pid);
		else if (reap_children(pid, ret_status)) /* after each wake-up, whatever its cause */
			return;
	}
}

int ll_trace_start_program(const struct ll_trace_how *how, const char *path, char **words, struct ll_sampler *sampler,
			   int *ret_status, struct ll_err *err)
{
	static const int passed[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
	sigset_t signals, before;
	pid_t pid = -1;
	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		sigaddset(&signals, passed[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int rc = start_command(how, path, words, &before, &pid, err);
	if (!rc) {
		ll_sampler_init(sampler, pid);
		watch_command(pid, &signals, sampler, ret_status);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}
