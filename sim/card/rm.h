/*
 * rm.h - what the kernel driver's resource manager keeps for programs: the objects that they make by ioctl on
 * /dev/nvidiactl, and which of them govern turns on the card (turn.h).
 *
 * A file is an open /dev/nvidiactl. It has clients, a client has devices, a device has a subdevice and channel groups,
 * a group has channels. Each is known by the client's handle and its own. Whoever has the file's descriptor may use its
 * objects, in another process too. They end with the process that opened the file, as its contexts do.
 *
 * The first compute group of a context governs the context: its slice, and channel by channel whether it is off. Off is
 * counted: a channel that was put off twice is off until it was put on twice.
 *
 * Functions that return a status return that of the driver, 0 for success (abi/rm.h). All are called with the world
 * locked and advanced.
 */
#ifndef LOADLINE_SIM_CARD_RM_H
#define LOADLINE_SIM_CARD_RM_H

#include "abi/rm.h"
#include "abi/rm_trace.h"
#include "card/world.h"

/* A command for a group, and statuses, of the driver. */
#define SIM_RM_GROUP_SCHEDULE UINT32_C(0xa06c0101)
enum {
	SIM_RM_DUPLICATE = 0x19,
	SIM_RM_NO_PERMISSION = 0x1b,
	SIM_RM_BAD_ARGUMENT = 0x1f,
	SIM_RM_BAD_CLASS = 0x22,
	SIM_RM_BAD_COMMAND = 0x24,
	SIM_RM_BAD_DEVICE = 0x26,
	SIM_RM_BAD_PARENT = 0x36,
	SIM_RM_NO_MEMORY = 0x51,
	SIM_RM_NO_OBJECT = 0x57,
};

/* Returns the file with this number. SIM_NONE: there is none. */
uint32_t sim_rm_find_file(const struct sim_world *w, uint64_t device, uint64_t inode);

/* Adds a file that a process has opened. SIM_NONE: there are too many. */
uint32_t sim_rm_add_file(struct sim_world *w, uint32_t proc, uint64_t device, uint64_t inode);

/* Closes the files of a process. */
void sim_rm_drop(struct sim_world *w, uint32_t proc);

/* The handle by which a group names its context's address space: the model's own, as contexts are not made by ioctl. */
static inline uint32_t sim_rm_address_space(uint32_t context)
{
	return 0x5c200000 + context;
}

/* Makes an object. An object without a handle gets one. A channel's number for records of context switches is written
 * into its parameters. */
uint32_t sim_rm_alloc(struct sim_world *w, uint32_t file, struct ll_rm_alloc *alloc);

/* Frees an object and those made in it. */
uint32_t sim_rm_free(struct sim_world *w, uint32_t file, const struct ll_rm_free *free);

/* Carries out a control call of an object. */
uint32_t sim_rm_control(struct sim_world *w, uint32_t file, const struct ll_rm_control *control);

/* Opens a memory for its mapping. Only the process that opened the file may do that. */
uint32_t sim_rm_open_memory(const struct sim_world *w, uint32_t file, const struct ll_rm_map *map, int *ret_fd);

#endif
