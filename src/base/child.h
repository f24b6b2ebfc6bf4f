/*
 * child.h - starts the processes that our programs start for themselves: workers, trials, MPS's programs. The
 * user's command is none of them. A process that outlives its starter for good is started by detach.h.
 *
 * Such a process keeps no descriptor of its starter's. If it did, `x=$(loadline run … 2>&1)` would wait for the end of
 * a process that the user does not know. It has descriptors that its starter gives it, /dev/null in place of a missing
 * one, and nothing else.
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
	LL_CHILD_RELAYED = -2, /* a pipe; a thread of this process copies it to standard error, as long as this process
				  lives */
};

enum ll_child_flag {
	LL_CHILD_OWN_GROUP = 1, /* a process group of its own */
	LL_CHILD_ORPHAN = 2,    /* a session of its own, and this process need not wait for it */
	LL_CHILD_MORTAL = 4,    /* the kernel sends it SIGKILL when the calling thread ends */
	LL_CHILD_DETACHED = 8,  /* nothing of its starter: use ll_detach_start (detach.h) */
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
 * beginning, there is no moment in which a Ctrl-C could end the process. SIGPIPE is in it too, because a driver may
 * write to a stderr that nobody reads.
 */
void ll_child_group_signals(sigset_t *ret_set);

/*
 * For a child made by fork that goes on without exec: lets go of everything but fd. The standard streams become
 * /dev/null. Returns the number that fd has then; a negative errno: it cannot go on.
 */
int ll_child_keep_only(int fd);

#endif
