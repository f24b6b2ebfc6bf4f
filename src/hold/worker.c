#include "hold/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "hold/worker_fds.h"

/* What is sent to a whole process group or control group. SIGPIPE: a driver may complain to a stderr nobody reads. */
static const int blocked_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGTSTP,
				      SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGPIPE};

/* Out of the way of the numbers that the worker expects. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, LL_WORKER_FD_END);
}

static int set_fds(posix_spawn_file_actions_t *actions, int page_fd, int governor_fd, int call_fd)
{
	int rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, page_fd, LL_WORKER_FD_PAGE);
	if (rc == 0) /* without a governor to wake the worker writes to /dev/null */
		rc = posix_spawn_file_actions_adddup2(actions, governor_fd >= 0 ? governor_fd : STDIN_FILENO,
						      LL_WORKER_FD_GOVERNOR);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, call_fd, LL_WORKER_FD_CALL);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions, LL_WORKER_FD_END);
	return rc;
}

/* Blocked from the first instruction on: there is no moment in which a Ctrl-C could end it. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof blocked_signals / sizeof *blocked_signals; i++)
		sigaddset(&set, blocked_signals[i]);
	int rc = posix_spawnattr_setsigmask(attr, &set);
	return rc ? rc : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
}

static int spawn(const char *title, int page_fd, int governor_fd, int call_fd, pid_t *ret_pid)
{
	char *argv[] = {(char *)title, LL_WORKER_WORD, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc != 0)
		return rc;
	rc = posix_spawnattr_init(&attr);
	if (rc == 0) {
		rc = set_fds(&actions, page_fd, governor_fd, call_fd);
		if (rc == 0)
			rc = set_signals(&attr);
		if (rc == 0)
			rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attr, argv, environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

int ll_worker_start_process(struct ll_worker *worker, const char *title, int page_fd, int governor_fd, int call_fd,
			    struct ll_err *err)
{
	LL_SCOPE_CLOSE int page = move_up(page_fd);
	LL_SCOPE_CLOSE int call = move_up(call_fd);
	LL_SCOPE_CLOSE int governor = governor_fd >= 0 ? move_up(governor_fd) : -1;
	int rc = page < 0 || call < 0 || (governor_fd >= 0 && governor < 0) ? errno : 0;
	pid_t pid;
	if (rc == 0)
		rc = spawn(title, page, governor, call, &pid);
	if (rc != 0)
		return ll_err_set(err, -rc, "start the payload process: %s", strerror(rc));
	*worker = (struct ll_worker){.is_running = true, .pid = pid};
	return 0;
}

static void *thread_main(void *arg)
{
	pthread_setname_np(pthread_self(), "ll-pacer");
	ll_pacer_loop(arg);
	return NULL;
}

int ll_worker_start_thread(struct ll_worker *worker, const struct ll_pacer_loop_config *loop, struct ll_err *err)
{
	*worker = (struct ll_worker){.is_thread = true};
	int rc = pthread_create(&worker->thread, NULL, thread_main, (void *)loop);
	if (rc != 0)
		return ll_err_set(err, -rc, "start the payload thread: %s", strerror(rc));
	worker->is_running = true;
	return 0;
}

static void describe_end(struct ll_worker *worker, const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		snprintf(worker->end_text, sizeof worker->end_text, "exit status %d", info->si_status);
	else
		snprintf(worker->end_text, sizeof worker->end_text, "signal %d (%.30s)", info->si_status,
			 strsignal(info->si_status));
}

static bool process_has_ended(struct ll_worker *worker)
{
	siginfo_t info = {0};
	int rc = waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG);
	/* ECHILD: whoever started us has set SIGCHLD to be ignored; the kernel reaped it. */
	if (rc < 0 && errno == ECHILD)
		snprintf(worker->end_text, sizeof worker->end_text, "unknown status");
	else if (rc < 0 || info.si_pid == 0)
		return false;
	else
		describe_end(worker, &info);
	return true;
}

bool ll_worker_is_running(struct ll_worker *worker)
{
	if (!worker->is_running)
		return false;
	bool has_ended = worker->is_thread ? pthread_tryjoin_np(worker->thread, NULL) == 0 : process_has_ended(worker);
	worker->is_running = !has_ended;
	return worker->is_running;
}

void ll_worker_kill(const struct ll_worker *worker)
{
	if (worker->is_running && !worker->is_thread)
		kill(worker->pid, SIGKILL);
}

bool ll_worker_is_asked(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], LL_WORKER_WORD) == 0;
}
