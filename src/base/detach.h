/*
 * detach.h - starts a process that outlives everything that it was started from.
 *
 * The process inherits nothing of its starter. It is not the leader of a session and has no terminal. Its folder is /,
 * its umask is 077, and its signals are those of a fresh process. Its environment has the variables of a list, and of
 * LD_PRELOAD the simulated kernel driver alone. Its descriptors are /dev/null three times and those that it was given.
 * So no terminal, no pipe, no `x=$(…)` and no mount waits for its end. Soft limits that could end it or make it fail
 * are raised to the hard limits. Its scheduling class and its CPUs are the defaults.
 *
 * Some properties cannot be reset: hard limits, a nice value, seccomp filters, cpusets, the control group.
 */
#ifndef LOADLINE_BASE_DETACH_H
#define LOADLINE_BASE_DETACH_H

#include <stddef.h>
#include <stdint.h>

struct ll_err;

struct ll_detach {
	const char *path;         /* absolute; its last part is the name in ps */
	const char *const *words; /* NULL-ended */
	const int *fds;           /* its descriptors from LL_CHILD_FIRST_FD (child.h) on */
	size_t fd_count;
};

/*
 * Starts the process, and returns when it executes the program. It is no child of the caller, so the caller need not
 * wait for it. Errors are those of ll_child_start. Takes about 0.5 ms for a small caller.
 */
int ll_detach_start(const struct ll_detach *detach, struct ll_err *err);

/*
 * Runs a program as ll_detach_start starts one, waits for its end, and says why it failed: err's text becomes the last
 * line that it wrote to standard error, or how it ended. For a program that ends at once, like one with --version.
 * -EIO: it failed. -ETIMEDOUT: it had not ended at deadline_ns (CLOCK_MONOTONIC), and was killed. Errors of
 * ll_child_start.
 */
int ll_detach_try(const char *path, const char *const *words, uint64_t deadline_ns, struct ll_err *err);

/* Resets folder, umask, signal handlers, soft limits, scheduling class and CPUs. ll_child_start calls it for
 * LL_CHILD_DETACHED, between fork and exec, so it makes only system calls. */
void ll_detach_self(void);

#endif
