/*
 * groups.h - the channel groups of this process, as its own CUDA driver library makes them, and what can be asked about
 * them: the length of their time slice on the card, and whether they are on the card at all.
 *
 * libcuda asks the kernel driver through libc's ioctl. The library stands in for that function (ll_groups_note) and
 * notes what libcuda allocates and frees. It changes nothing in the requests. Each CUDA context has a group for
 * compute, and groups for copies. Only compute groups are noted: while they are off, copies between host and card go
 * on.
 *
 * What is set belongs to the process and ends with it. Off is counted by the driver: a group runs when on was asked as
 * often as off. So only one thread of a process, and no other process, may call ll_group_switch.
 *
 * A forked child has its parent's descriptors and must not use them: ll_groups_forget.
 */
#ifndef LOADLINE_SLICES_GROUPS_H
#define LOADLINE_SLICES_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/rm.h"

enum { LL_GROUPS = 64 };

typedef int (*ll_ioctl_fn)(int fd, unsigned long request, ...);

/* An open file of the driver. Programs close descriptors that are not theirs, and the number is another file's then.
 * ll_driver_file_note fails if fd is not open; ll_driver_file_is_open: is it still that file? */
struct ll_driver_file {
	int fd;
	uint64_t inode, device;
};
bool ll_driver_file_note(int fd, struct ll_driver_file *ret_file);
bool ll_driver_file_is_open(const struct ll_driver_file *file);

/* The compute group of a context. The caller of the functions below has a copy of its own. */
struct ll_group {
	struct ll_driver_file file; /* libcuda's */
	uint32_t client, device, subdevice, group;
	uint32_t channel_count; /* more than LL_RM_DISABLE_MAX: the others were not noted, and the group cannot be taken
				   off */
	uint32_t channels[LL_RM_DISABLE_MAX];
	uint32_t contexts[LL_RM_DISABLE_MAX]; /* the numbers that records of context switches have */
	uint32_t slice_us;                    /* that was set last, by libcuda or by ll_group_set_slice; 0: none yet */
};

/*
 * Calls the function, and notes a request of libcuda that made or ended a group. Costs other requests one comparison:
 * no lock, no memory; so it may be called in a signal handler, and after vfork. errno is as the function leaves it.
 */
int ll_groups_note(ll_ioctl_fn next, int fd, unsigned long request, void *argument);

/* Rises when a group comes or goes. One load. */
uint32_t ll_groups_changes(void);

/* Copies the groups. Returns how many there are; more than LL_GROUPS: the others were not noted. */
size_t ll_groups_read(struct ll_group ret_groups[LL_GROUPS]);

/* In a forked child. */
void ll_groups_forget(void);

/* The calls below take some 0.3 ms, and up to 20 ms while anybody makes contexts on any card of the machine. They
 * return 0; -EBADF: the descriptor is not libcuda's any more; -ESTALE: the driver does not know the group or a channel
 * any more; -E2BIG: the group has too many channels; -EPERM or -EIO: it refuses. */

/* The length of the slice. It is in force at once, in the middle of a kernel too, and begins anew. */
int ll_group_set_slice(ll_ioctl_fn next, const struct ll_group *group, uint32_t us);

/* The card leaves the group at once, if another has work: on some cards a new slice counts only from then on. */
int ll_group_preempt(ll_ioctl_fn next, const struct ll_group *group);

/* Takes the group off the card, in the middle of a kernel too, or lets it on again. */
int ll_group_switch(ll_ioctl_fn next, const struct ll_group *group, bool is_off);

/* Which card it is on, as "GPU-..." */
int ll_group_read_uuid(ll_ioctl_fn next, const struct ll_group *group, char *ret_uuid, size_t size);

#endif
