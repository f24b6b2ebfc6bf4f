/*
 * exported_table.h - who holds exported memory: a file, which all processes of the user on the
 * card share. Private to exported.c.
 *
 * The file is an array of rows. A process opens it for one look or change, with a lock of the file, and closes it
 * again: a process that is killed leaves no lock. A row is written at once, so it is never half-written. Who holds what
 * is tied to claims: a row of a claim that has ended is nobody's.
 */
#ifndef LOADLINE_SHIM_MEMORY_EXPORTED_TABLE_H
#define LOADLINE_SHIM_MEMORY_EXPORTED_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/device_state.h"

enum ll_exported_kind {
	LL_EXPORTED_FREE,
	LL_EXPORTED_NAME,       /* a handle's bytes, by their hash, are of the memory with that id */
	LL_EXPORTED_HOLDER,     /* a process, by its claim, holds the memory, or is charged for it, or both */
	LL_EXPORTED_DESCRIPTOR, /* descriptors of it hold the memory for the tenant while one is open (descriptor.h) */
};

enum { LL_EXPORTED_HOLDS = 1, LL_EXPORTED_CARRIES = 2, LL_EXPORTED_PATH_SIZE = 168 };

struct ll_exported_row {
	uint32_t kind;  /* enum ll_exported_kind */
	uint32_t flags; /* of a holder */
	uint64_t id;    /* of the memory */
	uint64_t tenant;
	uint64_t bytes; /* of a holder: what the memory takes of the card; 0: not known yet */
	uint64_t claim; /* of a holder: the token of its claim; this and the next four are a struct ll_port_name */
	uint64_t namespaces, start_ticks;
	uint32_t slot, pid;
	uint64_t key;           /* of a name */
	uint64_t device, inode; /* of a descriptor's file */
	char path[LL_EXPORTED_PATH_SIZE];
};

_Static_assert(sizeof(struct ll_exported_row) == 256, "the same in all processes");

struct ll_exported_table {
	int fd;
	struct ll_exported_row *rows;
	size_t count, capacity;
};

/*
 * Opens and reads the table of the card. One thread at a time. -ENOENT: it is not there, and shall not be created.
 * -EBUSY: another process has had it for 50 ms. Other errors: the file cannot be used.
 */
int ll_exported_table_open(const struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table);
void ll_exported_table_close(struct ll_exported_table *table);

/* Adds a row; writes a row that was changed; frees a row. -errno: the file cannot be written, or is full. */
int ll_exported_table_add(struct ll_exported_table *table, const struct ll_exported_row *row);
int ll_exported_table_write(struct ll_exported_table *table, const struct ll_exported_row *row);
void ll_exported_table_free(struct ll_exported_table *table, struct ll_exported_row *row);

#define LL_EXPORTED_EACH(table, row)                                                                                   \
	for (struct ll_exported_row *row = (table)->rows; row < (table)->rows + (table)->count; row++)

#endif
