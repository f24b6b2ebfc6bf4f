/*
 * tree.h - whether processes of a job are left.
 *
 * A job's processes have three things in common, and each may be lost:
 *
 *   - The lifeline: the writable end of a pipe, which every descendant inherits, also through fork without exec and
 *     clone. A program that closes all its descriptors (closefrom, a daemon) loses it.
 *   - The first process: what `run` became.
 *   - LOADLINE_RUN with the job's id in the environment with which a process began (/proc/PID/environ).
 *
 * The first two tell of their end by themselves. Only when both have ended the third is looked for, in all processes of
 * this user; one that is found is waited for. A process that has lost all three, and whose first process has ended, is
 * not found (protocol/inherited.h says the same of its tenant).
 */
#ifndef LOADLINE_MONITOR_TREE_H
#define LOADLINE_MONITOR_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct ll_tree {
	int lifeline_fd; /* the readable end, the caller's; -1: all writable ends are closed */
	int first_fd;    /* of the first process (process.h), the caller's; -1: it has ended */
	int found_fd;    /* of another one, its own; -1: none was looked for, or it has ended */
	uint64_t id;     /* of LOADLINE_RUN */
};

/* Finds a process with this id in its environment, and returns a descriptor of it; -1: there is none. */
int ll_tree_find(uint64_t id);

/* Looks at what is known to have changed; returns whether the tree has ended. Some ms if both descriptors have. */
bool ll_tree_has_ended(struct ll_tree *tree);

/* Returns a descriptor of the process whose end must be noticed; -1: none. */
int ll_tree_process(const struct ll_tree *tree);

#endif
