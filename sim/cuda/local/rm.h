/*
 * rm.h - what the library asks of the kernel driver by ioctl, as libcuda 580 does: for a process a client, for each
 * card a device and a subdevice, for each context channel groups with channels, and the slice of the group for compute.
 *
 * Where nothing answers, since libloadline-sim-kernel.so is not preloaded, contexts go without. The functions need no
 * lock: others may be called from within them, by a library that hears of the requests.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_RM_H
#define LOADLINE_SIM_CUDA_LOCAL_RM_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_RM_GROUPS = 4 };

/* The device in which a context's groups are, and their handles. 0: there is no such group. */
struct sim_rm_groups {
	uint32_t device;
	uint32_t groups[SIM_RM_GROUPS];
};

/* Reads CUDA_DEVICE_MAX_CONNECTIONS: the number of a context's hardware queues, 1 to 32. Without it there are 8, and
 * fewer channels for copies. */
uint32_t sim_rm_connections(bool *ret_is_told);

/* Makes the groups of a context: for compute with as many channels as it has hardware queues, and for copies. slot: its
 * slot in the world; SIM_NONE: a green context, whose groups govern nothing. */
void sim_rm_open(struct sim_rm_groups *groups, uint32_t card, uint32_t slot);

/* Frees them. */
void sim_rm_close(const struct sim_rm_groups *groups);

#endif
