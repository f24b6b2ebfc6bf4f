/*
 * detach.h - starts a process that outlives everything that it was started from.
 *
 * The process has nothing of its starter: it is the leader of no session and has no terminal, its folder is /, its
 * umask is 077, its signals are those of a fresh process, its environment has the variables of a list, and its
 * descriptors are /dev/null three times and those that it was given. So no terminal, no pipe, no `x=$(…)` and no mount
 * waits for its end. Soft limits that could end it or make it fail are raised to the hard ones, and its scheduling
 * class and its CPUs are the usual ones.
 *
 * What a process cannot give back stays: hard limits, a nice value, seccomp filters, cpusets, the control group.
 */
#ifndef LOADLINE_BASE_DETACH_H
#define LOADLINE_BASE_DETACH_H

#include <stddef.h>

struct ll_err;

struct ll_detach {
	const char *path;         /* absolute. Its last part is the name in ps */
	const char *const *words; /* NULL-ended */
	const int *fds;           /* its descriptors from LL_CHILD_FIRST_FD (child.h) on */
	size_t fd_count;
};

/*
 * Starts the process, and returns when it executes the program. It is nobody's child, so nobody need wait for it.
 * Errors are those of ll_child_start. Some 0.5 ms for a small caller.
 */
int ll_detach_start(const struct ll_detach *detach, struct ll_err *err);

/* Lets go of folder, umask, signal handlers, soft limits, scheduling class and CPUs. ll_child_start calls it for
 * LL_CHILD_DETACHED, between fork and exec: it makes system calls alone. */
void ll_detach_self(void);

#endif
