/*
 * exported_holding.h - what this process holds of exported memory, or carries for others, and its rows in the table
 * (exported_table.h). Private to exported.c and exported_dead.c.
 *
 * The caller has ll_holding_lock. A function that takes a table wants it open.
 */
#ifndef LOADLINE_SHIM_MEMORY_EXPORTED_HOLDING_H
#define LOADLINE_SHIM_MEMORY_EXPORTED_HOLDING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"
#include "shim/memory/exported_table.h"

/* Memory that this process shares with others. */
struct ll_holding {
	struct ll_device_state *dev;
	uint64_t id;
	uint64_t bytes;         /* what it takes of the card; 0: not known yet */
	uint64_t charged_bytes; /* to this process, for the tenant */
	uint64_t claim;         /* token and slot under which its row was written */
	uint32_t slot;
	unsigned uses;   /* 0: only carried, for others */
	bool is_carried; /* by this process */
	bool is_pooled;  /* a block of a pool of this process, which is charged for it */
	struct ll_holding *next;
};

extern pthread_mutex_t ll_holding_lock;
extern _Atomic bool ll_holding_is_any; /* whether the process ever had a holding; readable without the lock */

/* The holding of that memory; NULL: there is none. find_or_add makes one; NULL: no memory. */
struct ll_holding *ll_holding_find(uint64_t id);
struct ll_holding *ll_holding_find_or_add(struct ll_device_state *dev, uint64_t id);
void ll_holding_forget(struct ll_holding *holding);

/* Opens the table, as ll_exported_table_open. If this process has another claim since the last time, its rows follow.
 */
int ll_holding_open_table(struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table);

/* Whether the process has another claim since the table was last open, and its rows are the former one's. */
bool ll_holding_must_follow(const struct ll_device_state *dev);

/* The id of this process's tenant. */
uint64_t ll_holding_tenant(void);

/* Whether the claim of a holder's row is there still. */
bool ll_holding_is_alive(const struct ll_device_state *dev, const struct ll_exported_row *row);

/* Whether the tenant holds the memory by a process or a descriptor, other than by this holding, which may be NULL. */
bool ll_holding_has_others(const struct ll_device_state *dev, const struct ll_exported_table *table, uint64_t tenant,
			   uint64_t id, const struct ll_holding *but);

/* The row of the process that carries the memory for this tenant, other than by this holding. NULL: there is none. */
const struct ll_exported_row *ll_holding_find_carrier(const struct ll_device_state *dev,
						      const struct ll_exported_table *table, uint64_t id,
						      const struct ll_holding *but);

/* The most that any process has said of the memory's size; 0: nothing. */
uint64_t ll_holding_find_size(const struct ll_exported_table *table, uint64_t id);

/* Writes the holding's row, and adds it where it is missing. -errno: nobody else knows of it. */
int ll_holding_write(struct ll_exported_table *table, struct ll_holding *holding);

/* Frees the names and descriptors of memory that no process holds. */
void ll_holding_free_rest(struct ll_exported_table *table, uint64_t id);

/* Ends the holding, and gives its charge back. The table may be NULL. */
void ll_holding_give_back(struct ll_exported_table *table, struct ll_holding *holding);

/* The process has no use of the memory any more: ends the holding, or goes on carrying it for others. True: a charge
 * was given back. Without a table nobody else knows of it. The second: of all that have no use. The third: whether
 * there are such. */
bool ll_holding_let_go(struct ll_exported_table *table, struct ll_holding *holding);
bool ll_holding_let_go_unused(struct ll_device_state *dev, struct ll_exported_table *table);
bool ll_holding_any_unused(const struct ll_device_state *dev);

#endif
