/*
 * plain.h - plain allocations of a governed program: by the driver's cuMemAlloc, or, if the program is evictable, of
 * memory that can be moved (memory/backing.h).
 */
#ifndef LOADLINE_SHIM_RESIDENCY_PLAIN_H
#define LOADLINE_SHIM_RESIDENCY_PLAIN_H

#include "shim/memory/charge.h"

/*
 * cuMemAlloc of a governed program: charges the allocation, and adds it to the map of extents. If the card has no room
 * for an evictable program, the thread requests room from loadlined, and waits.
 */
ll_cu_result ll_plain_allocate(ll_cu_deviceptr *ret_address, size_t bytes);

/* Makes memory that can be moved (memory/backing.h). If the card has no room, the process gives up the reserve of its
 * pools; then the thread requests room from loadlined, and waits. */
ll_cu_result ll_plain_make(struct ll_device_state *dev, size_t bytes, ll_cu_deviceptr *ret_address,
			   uint32_t *ret_serial);

/* cuMemFree of an allocation with is_backed, whose extent was taken out of the map. Waits first. */
ll_cu_result ll_plain_free(const struct ll_extent *plain);

/* Waits for the work of the context that the memory belongs to, as the driver's cuMemFree does. If it belongs to none:
 * of the current one. */
ll_cu_result ll_plain_wait(const struct ll_extent *plain);

#endif
