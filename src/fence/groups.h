/*
 * groups.h - which control groups are fenced.
 *
 * Each child of the root is, but the groups that stay open: loadline.slice, in which jobs are, and services that need
 * the cards. If a group that stays open is below a child of the root, the groups beside it are fenced one by one. The
 * root's own processes cannot be fenced without all others.
 */
#ifndef LOADLINE_FENCE_GROUPS_H
#define LOADLINE_FENCE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

struct ll_err;

enum { LL_FENCE_PATH_SIZE = 512, LL_FENCE_OPEN_MAX = 64 };

struct ll_fence_tree {
	char root[LL_FENCE_PATH_SIZE];       /* the folder: "/sys/fs/cgroup" */
	const char *open[LL_FENCE_OPEN_MAX]; /* "/loadline.slice": the groups that stay open */
	size_t open_count;
};

enum ll_fence_verdict {
	LL_FENCE_CLOSED, /* fenced, with all below */
	LL_FENCE_OPEN,   /* stays open, with all below */
	LL_FENCE_PARTLY, /* has open ones below; its own processes stay open too */
};

/*
 * Finds the hierarchy of version 2, also beside hierarchies of version 1. root: another folder, for tests; NULL: the
 * machine's. Fills in the groups that stay open by themselves. -ENOSYS: it is not mounted, or has no groups. -ENOENT:
 * the folder is none of control groups of version 2.
 */
int ll_fence_tree_find(struct ll_fence_tree *tree, const char *root, struct ll_err *err);

/* Adds a group that stays open, "/system.slice/example.service". The text stays the caller's. -EINVAL: it does not
 * begin with a slash, or there are too many. */
int ll_fence_tree_keep_open(struct ll_fence_tree *tree, const char *group);

/* What happens to a group. */
enum ll_fence_verdict ll_fence_tree_judge(const struct ll_fence_tree *tree, const char *group);

/* Is called with the group ("/user.slice") and the open folder, which stays the walk's. Returns 0, or -errno, which
 * ends the walk. */
typedef int (*ll_fence_visit_fn)(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict);

/* Visits the groups that the verdict is about: CLOSED and OPEN ones without what is below, PARTLY ones with it. Groups
 * that disappear meanwhile are left out. */
int ll_fence_walk(const struct ll_fence_tree *tree, ll_fence_visit_fn visit, void *data);

/* Visits a group and all below, the upper ones first; "": the root. The verdict is that of the group alone. */
int ll_fence_walk_below(const struct ll_fence_tree *tree, const char *group, ll_fence_visit_fn visit, void *data);

/* The number of processes of the group itself, without kernel threads; -1: not known. */
int ll_fence_count_processes(int group_fd);

#endif
