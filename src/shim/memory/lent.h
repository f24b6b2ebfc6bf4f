/*
 * lent.h - blocks of an exported pool that the program has freed, and that other processes have imported. They stay on
 * the card whatever the pool gives back. For pools.c, which calls with the card's lock held.
 */
#ifndef LOADLINE_SHIM_MEMORY_LENT_H
#define LOADLINE_SHIM_MEMORY_LENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/device_state.h"
#include "shim/memory/extents.h"

struct ll_lent; /* a list; NULL: nothing is lent */

/* Whether the process ever lent anything, so that charges of pools may change without its doing. */
extern _Atomic bool ll_lent_is_any;

/* The program has freed an exported block. It is in the list from now on if somebody else has it. */
void ll_lent_add(struct ll_lent **list, const struct ll_extent *block);

/* What others still hold, in bytes. Takes out of the list what nobody holds any more. */
uint64_t ll_lent_bytes(struct ll_lent **list, struct ll_device_state *dev);

/* The pool ends: what others hold is charged by itself (exported.h). */
void ll_lent_end(struct ll_lent **list, struct ll_device_state *dev);

#endif
