/*
 * worker_spawn.h - starts the worker's process: this program once more, with the lanes' descriptors and nothing else.
 */
#ifndef LOADLINE_HOLD_WORKER_SPAWN_H
#define LOADLINE_HOLD_WORKER_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

struct ll_err;

/* A lane's own descriptors for one process to come, out of the way of the numbers that the process expects. */
struct ll_worker_fds {
	int page, governor, call; /* governor -1: nobody to wake */
};

/* Duplicates them for a process of so many lanes, so that the caller's may be closed meanwhile. */
int ll_worker_fds_dup(size_t lanes, const struct ll_worker_fds *from, struct ll_worker_fds *ret_fds,
		      struct ll_err *err);
void ll_worker_fds_close(struct ll_worker_fds *fds);

/* title: what ps shows. The process gets SIGKILL when the calling thread ends. */
int ll_worker_spawn(const char *title, const struct ll_worker_fds *fds, size_t lanes, pid_t *ret_pid,
		    struct ll_err *err);

#endif
