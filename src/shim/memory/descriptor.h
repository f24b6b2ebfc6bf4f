/*
 * descriptor.h - which memory a descriptor is of, and whether descriptors of it are open anywhere.
 *
 * The driver's descriptors of exported memory are all of one device file, so neither name nor inode tells one from
 * another. What goes with a descriptor wherever it is sent is its open file description, and a lock on a byte of the
 * file can belong to that. The library takes a shared lock on the byte whose number is the memory's id. /proc tells the
 * locks of a descriptor. The kernel frees the lock when the last descriptor of the description is closed, in whatever
 * process or socket that is. So another description of the same file sees whether a descriptor is open still.
 *
 * Needs Linux 4.1. Where it fails, nothing is known of the descriptor.
 */
#ifndef LOADLINE_SHIM_MEMORY_DESCRIPTOR_H
#define LOADLINE_SHIM_MEMORY_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids begin here: far behind the bytes that anybody else locks. */
#define LL_DESCRIPTOR_FIRST_ID (UINT64_C(0x4c4c) << 48)

/* Gives the descriptor an id. False: it cannot be told later. */
bool ll_descriptor_mark(int fd, uint64_t id);

/* Returns the id that the descriptor was given; 0: none, or it cannot be told. */
uint64_t ll_descriptor_id(int fd);

struct ll_descriptor_file {
	uint64_t device, inode;
};

/* Where the descriptor's file is. False: that cannot be told, or is too long for the path. */
bool ll_descriptor_find_file(int fd, char *ret_path, size_t size, struct ll_descriptor_file *ret_file);

/* Whether a descriptor of the memory is open somewhere. True if that cannot be told. */
bool ll_descriptor_is_open(uint64_t id, const char *path, const struct ll_descriptor_file *file);

#endif
