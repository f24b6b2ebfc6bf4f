#include "hold/worker_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"

static int move_up(int fd, size_t lanes)
{
	return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, ll_worker_fd(lanes, 0));
}

int ll_worker_fds_dup(size_t lanes, const struct ll_worker_fds *from, struct ll_worker_fds *ret_fds, struct ll_err *err)
{
	struct ll_worker_fds fds = {
	    .page = move_up(from->page, lanes),
	    .governor = move_up(from->governor, lanes),
	    .call = move_up(from->call, lanes),
	};
	if (fds.page < 0 || fds.call < 0 || (fds.governor < 0 && from->governor >= 0)) {
		int code = -errno;
		ll_worker_fds_close(&fds);
		return ll_err_set(err, code, "start the payload process: %s", strerror(-code));
	}
	*ret_fds = fds;
	return 0;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

void ll_worker_fds_close(struct ll_worker_fds *fds)
{
	close_one(fds->page);
	close_one(fds->governor);
	close_one(fds->call);
}

static int set_lane_fds(posix_spawn_file_actions_t *actions, const struct ll_worker_fds *fds, size_t lane)
{
	int rc = posix_spawn_file_actions_adddup2(actions, fds->page, ll_worker_fd(lane, LL_WORKER_FD_PAGE));
	if (rc == 0) /* without a governor to wake the worker writes to /dev/null */
		rc = posix_spawn_file_actions_adddup2(actions, fds->governor >= 0 ? fds->governor : STDIN_FILENO,
						      ll_worker_fd(lane, LL_WORKER_FD_GOVERNOR));
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, fds->call, ll_worker_fd(lane, LL_WORKER_FD_CALL));
	return rc;
}

static int set_fds(posix_spawn_file_actions_t *actions, const struct ll_worker_fds *fds, size_t lanes)
{
	int rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
	for (size_t i = 0; i < lanes && rc == 0; i++)
		rc = set_lane_fds(actions, &fds[i], i);
	if (rc == 0)
		rc = ll_child_close_from(actions, ll_worker_fd(lanes, 0));
	return rc;
}

static int set_attributes(posix_spawnattr_t *attr)
{
	short flags;
	int rc = ll_child_block_signals(attr);
	if (rc == 0)
		rc = posix_spawnattr_getflags(attr, &flags);
	return rc ? rc : posix_spawnattr_setflags(attr, (short)(flags | POSIX_SPAWN_SETPGROUP)); /* its own */
}

static int spawn_worker(const char *title, const struct ll_worker_fds *fds, size_t lanes, pid_t *ret_pid)
{
	char *argv[] = {(char *)title, LL_WORKER_WORD, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc != 0)
		return rc;
	rc = posix_spawnattr_init(&attr);
	if (rc == 0) {
		rc = set_fds(&actions, fds, lanes);
		if (rc == 0)
			rc = set_attributes(&attr);
		if (rc == 0)
			rc = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attr, argv, environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

int ll_worker_spawn(const char *title, const struct ll_worker_fds *fds, size_t lanes, pid_t *ret_pid,
		    struct ll_err *err)
{
	int rc = spawn_worker(title, fds, lanes, ret_pid);
	return rc == 0 ? 0 : ll_err_set(err, -rc, "start the payload process: %s", strerror(rc));
}
