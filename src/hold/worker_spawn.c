#include "hold/worker_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"
#include "base/scope.h"

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

/* The numbers of the lanes' descriptors in the process are one after the other (worker_spawn.h). */
static int *list_fds(const struct ll_worker_fds *fds, size_t lanes)
{
	int *list = calloc(lanes, LL_WORKER_FDS_PER_LANE * sizeof *list);
	for (size_t i = 0; list && i < lanes; i++) {
		int *lane = list + i * LL_WORKER_FDS_PER_LANE;
		lane[LL_WORKER_FD_PAGE] = fds[i].page;
		/* without a descriptor to wake, the worker writes to /dev/null */
		lane[LL_WORKER_FD_GOVERNOR] = fds[i].governor;
		lane[LL_WORKER_FD_CALL] = fds[i].call;
	}
	return list;
}

int ll_worker_spawn(const char *title, const struct ll_worker_fds *fds, size_t lanes, pid_t *ret_pid,
		    struct ll_err *err)
{
	const char *words[] = {title, LL_WORKER_WORD, NULL};
	LL_SCOPE_FREE int *list = list_fds(fds, lanes);
	sigset_t quiet;
	ll_child_group_signals(&quiet);
	struct ll_child child = {
	    .words = words,
	    .in = LL_CHILD_NULL,
	    .out = LL_CHILD_NULL,
	    .err = LL_CHILD_RELAYED,
	    .fds = list,
	    .fd_count = lanes * LL_WORKER_FDS_PER_LANE,
	    .mask = &quiet,
	    .flags = LL_CHILD_OWN_GROUP,
	};
	int rc = list ? ll_child_start(&child, ret_pid, err) : ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	return rc ? ll_err_wrap(err, "start the payload process") : 0;
}
