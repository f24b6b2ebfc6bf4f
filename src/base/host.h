/*
 * host.h - the host: how much memory it has, how much of that may be pinned, and which boot of it this is.
 *
 * Values of memory are bytes, from /proc/meminfo and the process's control groups (version 2, and the memory controller
 * of version 1). A value that cannot be read counts as unlimited.
 */
#ifndef LOADLINE_BASE_HOST_H
#define LOADLINE_BASE_HOST_H

#include <stdint.h>

/* The host's whole memory. */
uint64_t ll_host_memory_bytes(void);

/* The limit of this process's control groups; UINT64_MAX: none. */
uint64_t ll_host_group_limit_bytes(void);

/* Memory that can be used now without swapping: the host's MemAvailable, or what the control groups still allow if that
 * is less. */
uint64_t ll_host_available_bytes(void);

/* For tests: adds one group's folder. A group without a limit changes nothing. Pages of files that the kernel can take
 * back at once (inactive_file) do not count as used. */
enum ll_host_group_version { LL_HOST_GROUP_V1, LL_HOST_GROUP_V2 };
struct ll_host_group_memory {
	uint64_t limit_bytes, left_bytes; /* initially UINT64_MAX */
};
void ll_host_add_group(const char *folder, enum ll_host_group_version version, struct ll_host_group_memory *memory);

/* Memory that is always left to other programs: a sixteenth of the host's memory, or of the control groups' limit. */
uint64_t ll_host_reserve_bytes(void);

enum { LL_BOOT_ID_SIZE = 40 };

/* Reads the identity of this boot of the kernel, /proc/sys/kernel/random/boot_id. Empty: it cannot be read. */
void ll_boot_id_read(char ret_id[LL_BOOT_ID_SIZE]);

#endif
