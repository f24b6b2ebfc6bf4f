/*
 * hierarchy.h - the hierarchy of control groups in which jobs have their groups.
 *
 * Only version 2 is used. Where controllers of version 1 are mounted beside it (memory, cpu, cpuset), the groups are
 * folders: systemd would move the process in the hierarchies of version 1 too, out of the limits that it has there.
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
	bool is_beside_limits;     /* controllers of version 1 are mounted too */
};

/*
 * Finds the hierarchy. The groups are folders; the caller makes scopes of them if systemd can be asked
 * (ll_hierarchy_use_scopes). The folders are below the group of this process, which is the delegated one of a service.
 * -ENOTSUP: no control groups of version 2 are mounted.
 */
int ll_hierarchy_find(struct ll_hierarchy *ret_hierarchy, struct ll_err *err);

/* Sets the error that no control groups of version 2 are mounted, and returns it. */
int ll_hierarchy_miss(struct ll_err *err);

/* Groups are scopes in loadline.slice. */
void ll_hierarchy_use_scopes(struct ll_hierarchy *hierarchy);

/* Chooses from the text of /proc/self/mounts. own: /proc/self/cgroup. -ENOENT: there are none of version 2. */
int ll_hierarchy_choose(const char *mounts, const char *own, struct ll_hierarchy *ret_hierarchy);

bool ll_hierarchy_has(const struct ll_hierarchy *hierarchy, const char *group);

/* Makes the group and the base. A group that is there is success. -errno. */
int ll_hierarchy_make(const struct ll_hierarchy *hierarchy, const char *group);

/* Moves the process. -errno. */
int ll_hierarchy_attach(const struct ll_hierarchy *hierarchy, const char *group, pid_t pid);

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
 * Linux 5.14), or the group is gone. -errno. */
int ll_hierarchy_kill(const struct ll_hierarchy *hierarchy, const char *group);

/* Removes an empty group. -EBUSY: it has processes. A group that is gone is success. systemd removes an empty scope. */
int ll_hierarchy_remove(const struct ll_hierarchy *hierarchy, const char *group);

/* Writes a text into a file of a group that is there. -errno. */
int ll_hierarchy_write(const struct ll_hierarchy *hierarchy, const char *group, const char *file, const char *text);

/* Reads a file of a group; returns its length, or -errno. The text ends with a NUL. */
ssize_t ll_hierarchy_read(const struct ll_hierarchy *hierarchy, const char *group, const char *file, char *ret_text,
			  size_t size);

#endif
