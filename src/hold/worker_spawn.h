/*
 * worker_spawn.h - starts the worker's process, which is this program once more, with three descriptors for each lane.
 *
 * The process finds its descriptors by number: 0 to 2 as usual, then three for each lane, one lane after the other. It
 * takes as many lanes as it finds. No other descriptor is open in it.
 */
#ifndef LOADLINE_HOLD_WORKER_SPAWN_H
#define LOADLINE_HOLD_WORKER_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

struct ll_err;

/* argv[1] of the process. */
#define LL_WORKER_WORD "hold-worker"

enum {
	LL_WORKER_FD_FIRST = 3,
	LL_WORKER_FD_PAGE = 0, /* of the lane's three */
	LL_WORKER_FD_GOVERNOR,
	LL_WORKER_FD_CALL,
	LL_WORKER_FDS_PER_LANE,
};

/* Returns the number that this descriptor of this lane has in the process. */
static inline int ll_worker_fd(size_t lane, int which)
{
	return LL_WORKER_FD_FIRST + (int)lane * LL_WORKER_FDS_PER_LANE + which;
}

/* One lane's descriptors in the process that starts another. */
struct ll_worker_fds {
	int page, governor, call; /* governor -1: nobody to wake */
};

/* Duplicates a lane's descriptors for a process of so many lanes, to numbers above those that the process expects. The
 * caller may then close its own. Free with ll_worker_fds_close. */
int ll_worker_fds_dup(size_t lanes, const struct ll_worker_fds *from, struct ll_worker_fds *ret_fds,
		      struct ll_err *err);
void ll_worker_fds_close(struct ll_worker_fds *fds);

/* Starts the process with these lanes. title: what ps shows. The kernel sends the process SIGKILL when the calling
 * thread ends. */
int ll_worker_spawn(const char *title, const struct ll_worker_fds *fds, size_t lanes, pid_t *ret_pid,
		    struct ll_err *err);

#endif
