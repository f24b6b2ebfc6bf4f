/*
 * crew_spawn.h - starts a worker's process: this program once more, with its descriptors (worker.h) and nothing else.
 */
#ifndef LOADLINE_PROBE_CREW_SPAWN_H
#define LOADLINE_PROBE_CREW_SPAWN_H

#include <sys/types.h>

struct ll_err;

struct ll_probe_spawn {
	unsigned seat;
	const char *const *environment; /* as in crew.h */
	int page_fd, call_fd, answer_fd;
};

/* The process, and a descriptor that is readable when it has ended. It gets SIGKILL when the calling thread ends. */
int ll_probe_spawn(const struct ll_probe_spawn *spawn, pid_t *ret_pid, int *ret_pid_fd, struct ll_err *err);

#endif
