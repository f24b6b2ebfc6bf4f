/*
 * descriptor.h - finds the memory that a descriptor refers to, and whether any process has a descriptor of it open.
 *
 * All descriptors of exported memory refer to one device file of the driver, so name and inode cannot distinguish them.
 * But a descriptor that is sent to another process keeps its open file description, and a lock on a byte of a file can
 * belong to an open file description. So the library takes a shared lock on the byte whose number is the memory's id.
 * The /proc file system shows the locks of a descriptor. The kernel frees the lock when the last descriptor of the
 * description is closed, in any process or socket. So a process can test through another description of the file
 * whether a descriptor is still open.
 *
 * Needs Linux 4.1. If a call fails, the library knows nothing about the descriptor.
 */
#ifndef LOADLINE_SHIM_MEMORY_DESCRIPTOR_H
#define LOADLINE_SHIM_MEMORY_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first id. It is far above the bytes that other programs lock. */
#define LL_DESCRIPTOR_FIRST_ID (UINT64_C(0x4c4c) << 48)

/* Gives the descriptor an id. Returns false if the id could not be read later. */
bool ll_descriptor_mark(int fd, uint64_t id);

/* Returns the id of the descriptor; 0: it has none, or the id cannot be read. */
uint64_t ll_descriptor_id(int fd);

struct ll_descriptor_file {
	uint64_t device, inode;
};

/* Finds the path, device and inode of the descriptor's file. Returns false if they cannot be found or the path is
 * longer than size. */
bool ll_descriptor_find_file(int fd, char *ret_path, size_t size, struct ll_descriptor_file *ret_file);

/* Returns whether a descriptor of the memory is open in any process. Returns true if this cannot be found out. */
bool ll_descriptor_is_open(uint64_t id, const char *path, const struct ll_descriptor_file *file);

#endif
