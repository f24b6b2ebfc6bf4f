/*
 * filter.h - a BPF program at a control group of version 2, which denies to open devices of some majors.
 *
 * The program is of the type BPF_PROG_TYPE_CGROUP_DEVICE, in plain instructions, so no compiler is needed. It is
 * attached beside the programs of others (BPF_F_ALLOW_MULTI), such as those of systemd's DeviceAllow; a device opens if
 * all allow it, at the group and at all above it. It stays after this process has ended, until it is detached or the
 * group is removed. Descriptors that are open already stay so. Making a device file (mknod) is not denied.
 *
 * CAP_SYS_ADMIN is needed: to load and attach (CAP_BPF and CAP_NET_ADMIN would do from Linux 5.8 on), and to find the
 * programs of an earlier process by their ids.
 */
#ifndef LOADLINE_FENCE_FILTER_H
#define LOADLINE_FENCE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "fence/devices.h"

struct ll_err;

struct ll_fence_filter {
	int fd; /* of the program; -1: none is loaded */
	uint32_t id;
};

/* Loads a program that denies these majors. -ENOSYS, -EINVAL: the kernel has no such programs. -EPERM. */
int ll_fence_filter_load(struct ll_fence_filter *filter, const struct ll_fence_majors *majors, struct ll_err *err);

/* Closes the descriptor. Where the program is attached, it stays. */
void ll_fence_filter_close(struct ll_fence_filter *filter);

/* Attaches the program to a group, and detaches those of this kind that an earlier process has attached. Does nothing
 * if it is there. group_fd: the open folder. -errno. */
int ll_fence_filter_attach(const struct ll_fence_filter *filter, int group_fd);

/* Detaches all programs of this kind from the group. Returns how many there were, or -errno. */
int ll_fence_filter_detach(int group_fd);

/* Whether the group itself has one: 1, 0, or -errno. */
int ll_fence_filter_is_attached(int group_fd);

#endif
