/*
 * hierarchy.h - the hierarchy of control groups in which jobs have their groups.
 *
 * Version 2 is used if it is mounted. If controllers of version 1 are mounted beside it (memory or cpu), the freezer of
 * version 1 is used: a process that moves there stays within the limits of its other groups.
 */
#ifndef LOADLINE_KEEPER_HIERARCHY_H
#define LOADLINE_KEEPER_HIERARCHY_H

#include <stdbool.h>
#include <sys/types.h>

#include "protocol/keeper.h"

struct ll_err;

struct ll_hierarchy {
	struct ll_groups groups;
	char mount[LL_GROUP_SIZE]; /* the folder in which the hierarchy is mounted */
	/* With the freezer of version 1, where devices of version 1 are mounted; empty: they are not. Processes of jobs
	 * are in one group there, in which the fence lets the cards open. */
	char devices[LL_GROUP_SIZE];
};

/*
 * Finds the hierarchy. wanted: LL_GROUPS_NONE: chosen as above; the groups are then folders, the caller makes scopes of
 * them if systemd can be asked (ll_hierarchy_use_scopes). The folders are below the group of this process, which is the
 * delegated one of a service. -ENOENT: no such hierarchy is mounted.
 */
int ll_hierarchy_find(enum ll_group_kind wanted, struct ll_hierarchy *ret_hierarchy, struct ll_err *err);

/* Groups are scopes in loadline.slice. */
void ll_hierarchy_use_scopes(struct ll_hierarchy *hierarchy);

/* Chooses from the text of /proc/self/mounts. own: /proc/self/cgroup. Errors as above. */
int ll_hierarchy_choose(enum ll_group_kind wanted, const char *mounts, const char *own,
			struct ll_hierarchy *ret_hierarchy);

bool ll_hierarchy_has(const struct ll_hierarchy *hierarchy, const char *group);

/* Makes the group and the base. A group that is there is success. -errno. */
int ll_hierarchy_make(const struct ll_hierarchy *hierarchy, const char *group);

/* Moves the process. -errno. */
int ll_hierarchy_attach(const struct ll_hierarchy *hierarchy, const char *group, pid_t pid);

/* Moves the process to the group of jobs in the hierarchy of devices. If there is none, nothing is done. -errno. */
int ll_hierarchy_attach_devices(const struct ll_hierarchy *hierarchy, pid_t pid);

/* Stops or continues the processes of the group. They stop some time after the call. -errno. */
int ll_hierarchy_freeze(const struct ll_hierarchy *hierarchy, const char *group, bool is_frozen);

/*
 * Limits the memory of each device that the kernel knows (dmem.capacity) for the processes of the group. bytes: of each
 * device; 0: no limit. Enables the controller for the group. -ENOTSUP: no such controller, or no device. -errno.
 */
int ll_hierarchy_limit_devices(const struct ll_hierarchy *hierarchy, const char *group, uint64_t bytes);

/* Calls a function for each process in the group. -errno. */
int ll_hierarchy_each(const struct ll_hierarchy *hierarchy, const char *group, void (*call)(void *data, pid_t pid),
		      void *data);

/* Kills all processes of the group at once, those too that they start meanwhile. -ENOENT: this kernel cannot (before
 * Linux 5.14, and version 1), or the group is gone. -errno. */
int ll_hierarchy_kill(const struct ll_hierarchy *hierarchy, const char *group);

/* Removes an empty group. -EBUSY: it has processes. A group that is gone is success. systemd removes an empty scope. */
int ll_hierarchy_remove(const struct ll_hierarchy *hierarchy, const char *group);

/* Writes a text into a file of a group that is there. -errno. */
int ll_hierarchy_write(const struct ll_hierarchy *hierarchy, const char *group, const char *file, const char *text);

/* Reads a file of a group; returns its length, or -errno. The text ends with a NUL. */
ssize_t ll_hierarchy_read(const struct ll_hierarchy *hierarchy, const char *group, const char *file, char *ret_text,
			  size_t size);

#endif
