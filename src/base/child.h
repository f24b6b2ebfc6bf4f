/*
 * child.h - starts the processes that our programs start for their own use: workers, trials, MPS's programs. The user's
 * command is not started here. detach.h starts a process that outlives its starter.
 *
 * Such a process keeps no descriptor of its starter. If it did, `x=$(loadline run … 2>&1)` would wait for the end of a
 * process that the user does not know. It has the descriptors that its starter gives it, /dev/null in place of a
 * missing one, and nothing else.
 */
#ifndef LOADLINE_BASE_CHILD_H
#define LOADLINE_BASE_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

struct ll_err;

enum { LL_CHILD_FIRST_FD = 3 };

/* In place of a descriptor. */
enum {
	LL_CHILD_NULL = -1,
	/* a pipe; a thread of this process copies it to standard error as long as this process lives */
	LL_CHILD_RELAYED = -2,
};

enum ll_child_flag {
	LL_CHILD_OWN_GROUP = 1, /* a process group of its own */
	LL_CHILD_ORPHAN = 2,    /* a session of its own, and this process need not wait for it */
	LL_CHILD_MORTAL = 4,    /* the kernel sends it SIGKILL when the calling thread ends */
	LL_CHILD_DETACHED = 8,  /* inherits nothing of its starter; call ll_detach_start (detach.h) */
};

struct ll_child {
	const char *path;               /* NULL: this program */
	const char *const *words;       /* NULL-ended */
	const char *const *environment; /* NULL-ended; NULL: this process's */
	int in, out, err;
	const int *fds; /* its descriptors from LL_CHILD_FIRST_FD on */
	size_t fd_count;
	const sigset_t *mask; /* the signals that are blocked in it; NULL: none */
	unsigned flags;
};

/*
 * Starts the process, and returns when it executes the program. *ret_pid: the process; 0 for an orphan. An error is
 * that of the system call that failed, exec included; the text has no context. Any thread may call it.
 */
int ll_child_start(const struct ll_child *child, pid_t *ret_pid, struct ll_err *err);

/*
 * Makes the set of the signals that are sent to a whole process group or control group. If they are blocked from the
 * start, a Ctrl-C can never end the process. SIGPIPE is in the set too, because a driver may write to a stderr that
 * nobody reads.
 */
void ll_child_group_signals(sigset_t *ret_set);

/*
 * For a forked child that continues without exec: closes all descriptors but fd. The standard streams become /dev/null.
 * Returns the new number of fd, or a negative errno, after which the child cannot continue.
 */
int ll_child_keep_only(int fd);

#endif
