/*
 * exported_table.h - a file that lists the holders of exported memory. All processes of the user on the card share it.
 *
 * The file is an array of rows. A process opens and locks the file for one read or change, and then closes it. So a
 * killed process leaves no lock. While it has the lock, the table allocates no memory. A row is written by one call, so
 * it is never half-written. A holder's row belongs to a claim. If the claim has ended, the row does not count.
 *
 * The list is a file, and not in loadlined: a version with the list there had only 89 lines less, because who carries
 * memory that outlives its exporter is as hard to say there, and after a restart of loadlined it knew less.
 */
#ifndef LOADLINE_SHIM_MEMORY_EXPORTED_TABLE_H
#define LOADLINE_SHIM_MEMORY_EXPORTED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/device_state.h"

enum ll_exported_kind {
	LL_EXPORTED_FREE,
	LL_EXPORTED_NAME,       /* maps the hash of a handle's bytes to the id of the memory */
	LL_EXPORTED_HOLDER,     /* a process, named by its claim, that holds the memory, is charged for it, or both */
	LL_EXPORTED_DESCRIPTOR, /* descriptors that hold the memory for the tenant while one of them is open
				   (exported.c) */
};

enum { LL_EXPORTED_HOLDS = 1, LL_EXPORTED_CARRIES = 2, LL_EXPORTED_PATH_SIZE = 168 };

struct ll_exported_row {
	uint32_t kind;  /* enum ll_exported_kind */
	uint32_t flags; /* holder: its flags */
	uint64_t id;    /* the memory's id */
	uint64_t tenant;
	uint64_t bytes; /* holder: the memory's size on the card; 0: not known yet */
	uint64_t claim; /* holder: the token of its claim; this and the next four members are a struct ll_port_name */
	uint64_t namespaces, start_ticks;
	uint32_t slot, pid;
	uint64_t key;           /* name: the hash of the handle */
	uint64_t device, inode; /* descriptor: device and inode of its file */
	char path[LL_EXPORTED_PATH_SIZE];
};

_Static_assert(sizeof(struct ll_exported_row) == 256, "the same in all processes");

struct ll_exported_table {
	int fd;
	struct ll_exported_row *rows;
	size_t count, capacity;
};

/*
 * Opens and reads the table of the card. Only one thread may call it at a time. Returns -ENOENT if the file does not
 * exist and is_created is false. Returns -EBUSY if others have kept the lock for about 1 s, and says so once (say.h).
 * Returns another negative errno if the file cannot be used.
 */
int ll_exported_table_open(const struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table);
void ll_exported_table_close(struct ll_exported_table *table);

/* Add a row, write a changed row, and free a row. The first two return -errno if the file cannot be written or is full.
 */
int ll_exported_table_add(struct ll_exported_table *table, const struct ll_exported_row *row);
int ll_exported_table_write(struct ll_exported_table *table, const struct ll_exported_row *row);
void ll_exported_table_free(struct ll_exported_table *table, struct ll_exported_row *row);

#define LL_EXPORTED_EACH(table, row)                                                                                   \
	for (struct ll_exported_row *row = (table)->rows; row < (table)->rows + (table)->count; row++)

#endif
