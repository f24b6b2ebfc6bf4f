/*
 * worker_fds.h - the descriptors that a worker process starts with, besides 0 to 2: three for each lane, one lane after
 * the other. worker_spawn.c puts them there, worker_main.c takes as many as there are.
 */
#ifndef LOADLINE_HOLD_WORKER_FDS_H
#define LOADLINE_HOLD_WORKER_FDS_H

#include <stddef.h>

enum {
	LL_WORKER_FD_FIRST = 3,
	LL_WORKER_FD_PAGE = 0, /* of the lane's three */
	LL_WORKER_FD_GOVERNOR,
	LL_WORKER_FD_CALL,
	LL_WORKER_FDS_PER_LANE,
};

static inline int ll_worker_fd(size_t lane, int which)
{
	return LL_WORKER_FD_FIRST + (int)lane * LL_WORKER_FDS_PER_LANE + which;
}

#endif
