/*
 * lent.h - a list of blocks of an exported pool that the program has freed and that other processes have imported. Such
 * blocks stay on the card even if the pool returns its memory. Only pools.c uses this file. It holds the card's lock.
 */
#ifndef LOADLINE_SHIM_MEMORY_LENT_H
#define LOADLINE_SHIM_MEMORY_LENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"
#include "shim/memory/extents.h"

struct ll_lent; /* a list; NULL: empty */

/* True if the process had such a block at some time. Then the charges of pools may change without a call of this
 * process. */
extern _Atomic bool ll_lent_is_any;

/* Call it when the program has freed an exported block. Adds the block to the list if another process holds it. */
void ll_lent_add(struct ll_lent **list, const struct ll_extent *block);

/* Returns the bytes that other processes still hold. Removes blocks from the list that no process holds. */
uint64_t ll_lent_bytes(struct ll_lent **list, struct ll_device_state *dev);

/* Empties the list when the pool ends. Blocks that other processes hold are charged separately (exported.h). */
void ll_lent_end(struct ll_lent **list, struct ll_device_state *dev);

#endif
