#include "probe/crew_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"
#include "base/scope.h"
#include "probe/worker.h"

static bool has_name(const char *variable, const char *wish)
{
	size_t length = strcspn(wish, "=");
	return strncmp(variable, wish, length) == 0 && variable[length] == '=';
}

static bool is_changed(const char *variable, const char *const *wishes)
{
	for (; wishes && *wishes; wishes++) {
		if (has_name(variable, *wishes))
			return true;
	}
	return false;
}

/* Ours with the wishes; the strings stay where they are. */
static const char **make_environment(const char *const *wishes)
{
	size_t count = 0, kept = 0;
	for (char **at = environ; *at; at++)
		count++;
	for (const char *const *at = wishes; at && *at; at++)
		count++;
	const char **environment = calloc(count + 1, sizeof *environment);
	if (!environment)
		return NULL;
	for (char **at = environ; *at; at++) {
		if (!is_changed(*at, wishes))
			environment[kept++] = *at;
	}
	for (const char *const *at = wishes; at && *at; at++) {
		if (strchr(*at, '='))
			environment[kept++] = *at;
	}
	return environment;
}

/* Out of the way of the numbers that the process expects. */
static int set_fds(posix_spawn_file_actions_t *actions, const int fds[3])
{
	int rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
	for (int i = 0; i < 3 && rc == 0; i++)
		rc = posix_spawn_file_actions_adddup2(actions, fds[i], LL_PROBE_FD_PAGE + i);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions, LL_PROBE_FDS_END);
	return rc;
}

static int start(const struct ll_probe_spawn *spawn, const int fds[3], const char **environment, pid_t *ret_pid)
{
	char title[48], seat[16], word[] = LL_PROBE_WORKER_WORD;
	char *argv[] = {title, word, seat, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	snprintf(title, sizeof title, "loadline-probe: party %u", spawn->seat);
	snprintf(seat, sizeof seat, "%u", spawn->seat);
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc != 0)
		return rc;
	rc = posix_spawnattr_init(&attr);
	if (rc == 0) {
		rc = set_fds(&actions, fds);
		if (rc == 0)
			rc = ll_child_block_signals(&attr);
		if (rc == 0)
			rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attr, argv, (char **)environment);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static int watch(pid_t pid, int *ret_pid_fd, struct ll_err *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0) {
		*ret_pid_fd = fd;
		return 0;
	}
	int code = -errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ll_err_set(err, code, "watch the probe's process: %s", strerror(-code));
}

int ll_probe_spawn(const struct ll_probe_spawn *spawn, pid_t *ret_pid, int *ret_pid_fd, struct ll_err *err)
{
	const int given[3] = {spawn->page_fd, spawn->call_fd, spawn->answer_fd};
	int fds[3] = {-1, -1, -1};
	LL_SCOPE_FREE const char **environment = make_environment(spawn->environment);
	int rc = environment ? 0 : ENOMEM;
	for (int i = 0; i < 3 && rc == 0; i++) {
		fds[i] = fcntl(given[i], F_DUPFD_CLOEXEC, LL_PROBE_FDS_END);
		rc = fds[i] < 0 ? errno : 0;
	}
	if (rc == 0)
		rc = start(spawn, fds, environment, ret_pid);
	for (int i = 0; i < 3; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (rc != 0)
		return ll_err_set(err, -rc, "start the probe's process: %s", strerror(rc));
	return watch(*ret_pid, ret_pid_fd, err);
}
