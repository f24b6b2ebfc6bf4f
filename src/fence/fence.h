/*
 * fence.h - device files of NVIDIA's driver open inside the control groups of jobs only.
 *
 * Closing and opening may be repeated, and end in the same state. A process that has a device open keeps it. What the
 * fence has done stays when this process ends in any way; the state file (state.h) says what it is.
 */
#ifndef LOADLINE_FENCE_FENCE_H
#define LOADLINE_FENCE_FENCE_H

#include <stdio.h>

#include "fence/devices.h"
#include "fence/filter.h"
#include "fence/groups.h"

struct ll_err;

struct ll_fence {
	struct ll_fence_tree tree;
	struct ll_fence_majors majors;
	struct ll_fence_filter filter;
};

/* Finds the hierarchy. root, errors: as ll_fence_tree_find. */
int ll_fence_init(struct ll_fence *fence, const char *root, struct ll_err *err);
void ll_fence_fini(struct ll_fence *fence);

/* Closes all groups that are not closed, also for devices that have come since, and writes the state file. After an
 * error the fence may be closed in part. -EPERM: not root. */
int ll_fence_close(struct ll_fence *fence, struct ll_err *err);

/* Opens all groups, whoever has closed them, and removes the state file. */
int ll_fence_open(struct ll_fence *fence, struct ll_err *err);

/* Prints a line for each group: "closed GROUP", "open GROUP", "partly GROUP: N processes of its own". Returns 1 if a
 * group is not as it must be when the fence is closed, 0 if all are, or -errno. */
int ll_fence_show(struct ll_fence *fence, FILE *out, struct ll_err *err);

#endif
