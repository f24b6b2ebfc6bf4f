/*
 * backed.h - makes the driver's query functions answer for a backed allocation (backing.h) as they answer for an
 * allocation of the driver's cuMemAlloc or for a block of the driver's pools (movable_pool.h).
 *
 * To the driver a backed allocation is mapped physical memory in a reservation of whole blocks. So the driver would
 * report the reservation's range, no context, and export handle types. It would give a handle of the memory. It would
 * also accept addresses around an allocation that belong to no allocation. So a hook first calls ll_backed_find for an
 * address. If the address is not in an allocation of the program, the hook asks the driver about LL_BACKED_NOWHERE
 * instead. This is not an address of the card, so the driver returns its own error.
 *
 * The driver cannot share mapped memory by legacy IPC (cuIpcGetMemHandle). The library shares it (residency/shares.h).
 *
 * The driver's id of a range changes when the memory is evicted and resumed, and small allocations share one range. So
 * the library gives its own ids. They begin at LL_BACKED_FIRST_ID, above the driver's ids.
 */
#ifndef LOADLINE_SHIM_MEMORY_BACKED_H
#define LOADLINE_SHIM_MEMORY_BACKED_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

#define LL_BACKED_NOWHERE ((ll_cu_deviceptr)1)
#define LL_BACKED_FIRST_ID (UINT64_C(1) << 48)

enum ll_backed {
	LL_BACKED_NOT,        /* not the library's; the driver answers */
	LL_BACKED_ALLOCATION, /* in an allocation of the program */
	LL_BACKED_GAP,        /* in the library's memory, and in no allocation */
	LL_BACKED_MAPPING,    /* in memory that the program has mapped itself (physical.h) */
};

/* Returns what kind of address this is. ret_plain: the extent of the allocation or mapping that contains the address.
 * If the program is not evictable, the function needs two loads. */
enum ll_backed ll_backed_find(ll_cu_deviceptr address, struct ll_extent *ret_plain);

/* Returns the address for a driver's function whose answer for a mapping differs from its answer for an allocation of
 * cuMemAlloc. This is LL_BACKED_NOWHERE for an address of the library's memory, else the address itself. */
ll_cu_deviceptr ll_backed_hide(ll_cu_deviceptr address);
void *ll_backed_hide_pointer(void *address); /* the same for functions that take the address as a pointer */

/* The same for a driver's function whose answers for both do not differ: returns LL_BACKED_NOWHERE only for addresses
 * of the library's memory that are in no allocation. */
ll_cu_deviceptr ll_backed_hide_gap(ll_cu_deviceptr address);

/*
 * Writes the value of an attribute of an allocation or a mapping. A mapping needs it too, because the library makes
 * movable memory exportable as a descriptor although the program did not ask for this. Returns false if the driver's
 * own answer is right. ret_value has room for a value of the attribute.
 */
bool ll_backed_attribute(const struct ll_extent *plain, enum ll_cu_pointer_attribute attribute, void *ret_value);

/*
 * Sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. The driver has no such attribute for mapped memory. So the function makes all
 * synchronous operations of the current context wait (CU_CTX_SYNC_MEMOPS), which is more than the program asked for.
 * Returns the driver's error if it does not support this (before 12.1).
 */
ll_cu_result ll_backed_set_synced(const struct ll_extent *plain, bool is_synced);

/* Notes that the program has got a DMA buffer of the allocation, or a handle of it for other processes. */
void ll_backed_note_exported(const struct ll_extent *plain);

#endif
