/*
 * monitor.h - the small process of a job, and its parts.
 */
#ifndef LOADLINE_MONITOR_MONITOR_H
#define LOADLINE_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"
#include "protocol/start.h"

/* ---- tree ---- */

/*
 * Checks whether processes of a job live.
 *
 * A job's processes have three things in common, and each may be lost:
 *
 *   - The lifeline: the writable end of a pipe. Every descendant inherits it, also through fork
 *     without exec and through clone. A program that closes all its descriptors (closefrom, a
 *     daemon) loses it.
 *   - The first process: the one that `run` became.
 *   - LOADLINE_RUN with the job's id in the environment with which a process began
 *     (/proc/PID/environ).
 *
 * The kernel reports the end of the first two. When both have ended, the third is searched for in all processes of this
 * user. If a process is found, the monitor waits for its end. A process is not found if it has lost all three and the
 * first process has ended (protocol/inherited.h has the same limit for its tenant).
 */

struct ll_tree {
	int lifeline_fd; /* the readable end, owned by the caller; -1: all writable ends are closed */
	int first_fd;    /* of the first process (process.h), owned by the caller; -1: it has ended */
	int found_fd;    /* of another process, owned by the tree; -1: none was searched for, or it has ended */
	uint64_t id;     /* of LOADLINE_RUN */
};

/* Finds a process with this id in its environment, and returns a descriptor of it; -1: there is none. */
int ll_tree_find(uint64_t id);

/* Sends a signal to each process that has one of the three. Takes some milliseconds. */
void ll_tree_signal(const struct ll_tree *tree, int number);

/* Sends it to the process of a descriptor. */
void ll_tree_signal_process(int fd, int number);

/* Checks the descriptors that have changed; returns whether the tree has ended. Takes some milliseconds if both
 * descriptors have ended. */
bool ll_tree_has_ended(struct ll_tree *tree);

/* Returns a descriptor of the process whose end must be noticed; -1: none. */
int ll_tree_process(const struct ll_tree *tree);

/* ---- terminal ---- */

/* Writes a line to where a job's first process writes its errors: a terminal, a pipe, or a file. */

/*
 * Writes "loadline: TEXT" with a newline to the standard error of the process (process.h). The caller ignores SIGPIPE.
 * Never waits: a terminal that was stopped by Ctrl-S, and a full pipe, get nothing. A file that the process does not
 * append to is written only if the process's own descriptor can be used (pidfd_getfd: Linux 5.6, and the kernel allows
 * it): the process would write over the line otherwise. 0, or -errno: nothing was written; -ESRCH: the process has
 * ended.
 */
int ll_terminal_say(int process_fd, const char *text);

/* ---- monitor ---- */

/*
 * The small process of a job. It lives in the control group in which `run` was called, as long as a process
 * of the job lives. `run` asks loadlined by it: for a place, to register the job, and for the cards. It asks the next
 * loadlined the same, and starts loadlined again when the connection ends.
 *
 * Each job has a monitor, so the monitor is as small as possible: it has no threads, no event library and no lasting
 * allocations.
 */

struct ll_monitor_config {
	struct ll_place place;
	struct ll_programs programs;
	const char *version;
	int run_fd, lifeline_fd, process_fd; /* start.h */
};

/* Returns when the job has ended. -EPROTO: there is no job on run_fd. */
int ll_monitor_run(const struct ll_monitor_config *config);

#endif
