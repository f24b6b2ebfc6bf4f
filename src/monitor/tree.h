/*
 * tree.h - checks whether processes of a job live.
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
#ifndef LOADLINE_MONITOR_TREE_H
#define LOADLINE_MONITOR_TREE_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
