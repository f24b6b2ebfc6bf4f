/*
 * list.h - control groups of version 1: the lists of devices (devices.allow, devices.deny) of a group.
 *
 * A group allows all devices but those that it denies, or denies all but those that it allows. A device that is denied
 * for a group is denied for all groups below, and their entries for it go; allowed again for a group, it stays denied
 * below. So closing records the entries that go, and opening goes through all groups below. An entry for devices of any
 * number ("c *:* rwm") is left alone: without it the group could open nothing else.
 */
#ifndef LOADLINE_FENCE_LIST_H
#define LOADLINE_FENCE_LIST_H

#include "base/strbuf.h"
#include "fence/devices.h"
#include "fence/groups.h"

/*
 * Denies to read and write devices of these majors in a group and below. group_fd: its open folder. Adds to record a
 * line "GROUP<tab>ENTRY" for each entry that goes. Calling it again changes nothing. -errno.
 */
int ll_fence_list_close(const struct ll_fence_tree *tree, const char *group, int group_fd,
			const struct ll_fence_majors *majors, struct ll_strbuf *record);

/* Allows them again in a group and below. record: the lines of all groups. -errno. */
int ll_fence_list_open(const struct ll_fence_tree *tree, const char *group, const struct ll_fence_majors *majors,
		       const char *record);

#endif
