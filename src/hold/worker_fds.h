/*
 * worker_fds.h - the descriptors that a worker process starts with, besides 0 to 2: worker.c puts them there,
 * worker_main.c takes them.
 */
#ifndef LOADLINE_HOLD_WORKER_FDS_H
#define LOADLINE_HOLD_WORKER_FDS_H

enum {
	LL_WORKER_FD_PAGE = 3,
	LL_WORKER_FD_GOVERNOR,
	LL_WORKER_FD_CALL,
	LL_WORKER_FD_END,
};

#endif
