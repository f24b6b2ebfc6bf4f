/*
 * search.h - the MPS processes of this machine, as far as /proc shows them to us.
 *
 * A daemon can be asked only by whoever knows its pipe folder; these are found without. What a container hides or
 * another user's environment does not show is not found.
 */
#ifndef LOADLINE_MPS_SEARCH_H
#define LOADLINE_MPS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mps/place.h"

struct ll_mps_found {
	pid_t pid;
	uint64_t start_ticks;
	uid_t owner;
	bool is_server;              /* nvidia-cuda-mps-server; else the control daemon */
	char pipe[LL_MPS_PATH_SIZE]; /* "" where its environment is not shown to us */
};

/* Control daemons and servers, at most capacity; returns how many were stored. Milliseconds. */
size_t ll_mps_search(struct ll_mps_found *found, size_t capacity);

#endif
