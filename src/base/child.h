/*
 * child.h - starts the processes that our programs start for their own use: workers, trials, MPS's programs. The user's
 * command is not started here. ll_detach_start starts a process that outlives its starter.
 *
 * Such a process keeps no descriptor of its starter. If it did, `x=$(loadline run … 2>&1)` would wait for the end of a
 * process that the user does not know. It has the descriptors that its starter gives it, /dev/null in place of a
 * missing one, and nothing else.
 */
#ifndef LOADLINE_BASE_CHILD_H
#define LOADLINE_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_err;
struct ll_strbuf;

enum { LL_CHILD_FIRST_FD = 3 };

/* In place of a descriptor. */
enum {
	LL_CHILD_NULL = -1,
	/* a pipe; a thread of this process copies it to standard error as long as this process lives */
	LL_CHILD_RELAYED = -2,
	LL_CHILD_COLLECTED = -3, /* its output for ll_child_run */
};

enum ll_child_flag {
	LL_CHILD_OWN_GROUP = 1, /* a process group of its own */
	LL_CHILD_ORPHAN = 2,    /* a session of its own, and this process need not wait for it */
	LL_CHILD_MORTAL = 4,    /* the kernel sends it SIGKILL when the calling thread ends */
	LL_CHILD_DETACHED = 8,  /* inherits nothing of its starter; call ll_detach_start */
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

struct ll_child_run {
	struct ll_child child;
	const char *input;    /* its standard input: at most 4096 bytes; NULL: child.in */
	uint64_t deadline_ns; /* ll_now_ns; 0: none */
	const int *stop_fd;   /* the process is killed if it can be read; NULL: none */
	bool leaves_daemon;   /* it leaves a process running that writes on: its output goes to a file, not to a pipe
				 that would break */
};

/*
 * Runs a process until it has ended, and adds what it prints to LL_CHILD_COLLECTED (at most 4 MiB). A process that it
 * leaves running does not hold the call up. *ret_status: its exit status, or 128 + the signal that ended it.
 * -ETIMEDOUT, -EINTR: it was killed at the deadline, or for stop_fd, and the output has what it had printed; one that
 * does not die, because it is inside a driver call, is left. -E2BIG: it printed more. Other errors are those of
 * ll_child_start.
 */
int ll_child_run(const struct ll_child_run *run, struct ll_strbuf *output, int *ret_status, struct ll_err *err);

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

/*
 * Closes all descriptors from `first` on. Call it between fork and exec. If the kernel supports it, they are closed in
 * exec. So a lock of the caller is held until the program can be found by its name, even if the caller is killed
 * meanwhile. Makes only system calls.
 */
void ll_close_from(unsigned first);

/* The same, but closes them at once, for a child that continues without exec. */
void ll_close_from_now(unsigned first);

/*
 * A process that outlives everything that it was started from.
 *
 * The process inherits nothing of its starter. It is not the leader of a session and has no terminal. Its folder is /,
 * its umask is 077, and its signals are those of a fresh process. Its environment has the variables of a list, and of
 * LD_PRELOAD the simulated kernel driver alone. Its descriptors are /dev/null three times and those that it was given.
 * So no terminal, no pipe, no `x=$(…)` and no mount waits for its end. Soft limits that could end it or make it fail
 * are raised to the hard limits. Its scheduling class and its CPUs are the defaults.
 *
 * Some properties cannot be reset: hard limits, a nice value, seccomp filters, cpusets, the control group.
 */
struct ll_detach {
	const char *path;         /* absolute; its last part is the name in ps */
	const char *const *words; /* NULL-ended */
	const int *fds;           /* its descriptors from LL_CHILD_FIRST_FD on */
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

#endif
