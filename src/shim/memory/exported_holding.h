/*
 * exported_holding.h - the exported memory that this process holds or carries for others, and its rows in the table
 * (exported_table.h). Only exported.c and exported_dead.c include it.
 *
 * The caller holds ll_holding_lock. A table that is passed to a function is open.
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
	uint64_t bytes;         /* the memory's size on the card; 0: not known yet */
	uint64_t charged_bytes; /* the charge of this process, for the tenant */
	uint64_t claim; /* token of the claim under which the holding's row was written; slot: the claim's slot */
	uint32_t slot;
	unsigned uses;   /* 0: this process only carries the charge for others */
	bool is_carried; /* this process carries the charge */
	bool is_pooled;  /* it is a block of a pool of this process, and the pool is charged for it */
	struct ll_holding *next;
};

extern pthread_mutex_t ll_holding_lock;
extern _Atomic bool ll_holding_is_any; /* the process had a holding at some time; readable without the lock */

/* Returns the holding of the memory; NULL: there is none. ll_holding_find_or_add makes one if there is none; NULL: no
 * memory. */
struct ll_holding *ll_holding_find(uint64_t id);
struct ll_holding *ll_holding_find_or_add(struct ll_device_state *dev, uint64_t id);
void ll_holding_forget(struct ll_holding *holding);

/* Opens the table as ll_exported_table_open does. If this process has got another claim since the last time, writes its
 * rows again under the new claim. */
int ll_holding_open_table(struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table);

/* Returns whether the process has got another claim since the table was last open, so that its rows belong to the
 * former claim. */
bool ll_holding_must_follow(const struct ll_device_state *dev);

/* Returns the id of this process's tenant. */
uint64_t ll_holding_tenant(void);

/* Returns whether the claim of a holder's row still exists. */
bool ll_holding_is_alive(const struct ll_device_state *dev, const struct ll_exported_row *row);

/* Returns whether the tenant holds the memory by a process or a descriptor. Does not count the holding `but`, which may
 * be NULL. */
bool ll_holding_has_others(const struct ll_device_state *dev, const struct ll_exported_table *table, uint64_t tenant,
			   uint64_t id, const struct ll_holding *but);

/* Returns the row of the process that carries the memory for this process's tenant; NULL: there is none. Does not count
 * the holding `but`. */
const struct ll_exported_row *ll_holding_find_carrier(const struct ll_device_state *dev,
						      const struct ll_exported_table *table, uint64_t id,
						      const struct ll_holding *but);

/* Returns the largest size of the memory that any process has written; 0: none has. */
uint64_t ll_holding_find_size(const struct ll_exported_table *table, uint64_t id);

/* Writes the holding's row, and adds the row if it is missing. Returns -errno if it cannot be written; then other
 * processes do not know of the holding. */
int ll_holding_write(struct ll_exported_table *table, struct ll_holding *holding);

/* Frees the names and descriptors of memory that no process holds. */
void ll_holding_free_rest(struct ll_exported_table *table, uint64_t id);

/* Ends the holding and returns its charge. The table may be NULL. */
void ll_holding_give_back(struct ll_exported_table *table, struct ll_holding *holding);

/* ll_holding_let_go is for a holding without uses. It ends the holding, or keeps it because this process carries the
 * memory for others. Returns true if a charge was returned. table NULL: no other process knows of the holding.
 * ll_holding_let_go_unused does this for all holdings without uses. ll_holding_any_unused returns whether there are
 * any. */
bool ll_holding_let_go(struct ll_exported_table *table, struct ll_holding *holding);
bool ll_holding_let_go_unused(struct ll_device_state *dev, struct ll_exported_table *table);
bool ll_holding_any_unused(const struct ll_device_state *dev);

#endif
