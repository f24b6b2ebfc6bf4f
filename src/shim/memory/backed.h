/*
 * backed.h - what the driver's functions tell a program of a backed allocation (backing.h): the same as of an
 * allocation that the driver's cuMemAlloc made, or of a block of its pools (movable_pool.h).
 *
 * The driver sees mapped physical memory there, in a reservation of whole blocks. So it would tell the reservation's
 * range, no context, and the kinds of handles as which the memory can be exported; it would retain a handle of it; and
 * it would know addresses around an allocation that belong to nobody. A hook asks ll_backed_find what an address is.
 * For addresses that are not the program's it asks the driver about LL_BACKED_NOWHERE instead, which is no address of
 * the card: so the error is the driver's own.
 *
 * The driver shares no mapped memory by legacy IPC (cuIpcGetMemHandle). The library does (residency/shares.h).
 *
 * The driver's ids of a range would change when the memory leaves and returns, and small allocations would share them.
 * The library gives ids of its own. They begin at LL_BACKED_FIRST_ID, beyond the driver's.
 */
#ifndef LOADLINE_SHIM_MEMORY_BACKED_H
#define LOADLINE_SHIM_MEMORY_BACKED_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

#define LL_BACKED_NOWHERE ((ll_cu_deviceptr)1)
#define LL_BACKED_FIRST_ID (UINT64_C(1) << 48)

enum ll_backed {
	LL_BACKED_NOT,        /* not ours: the driver answers */
	LL_BACKED_ALLOCATION, /* in an allocation of the program */
	LL_BACKED_GAP,        /* in our memory, and in no allocation */
	LL_BACKED_MAPPING,    /* in memory that the program has mapped by itself (physical.h) */
};

/* What the address is. ret_plain: the allocation's extent, or the mapping's, if it is in one. Two loads if the program
 * is not evictable.
 */
enum ll_backed ll_backed_find(ll_cu_deviceptr address, struct ll_extent *ret_plain);

/* The address that the driver shall be asked about, where it would tell a mapping from an allocation by cuMemAlloc:
 * LL_BACKED_NOWHERE for one of ours. */
ll_cu_deviceptr ll_backed_hide(ll_cu_deviceptr address);
void *ll_backed_hide_pointer(void *address); /* for functions that take the address as a pointer */

/* The same, of addresses around allocations alone: where the driver tells the same of both. */
ll_cu_deviceptr ll_backed_hide_gap(ll_cu_deviceptr address);

/*
 * Writes the value of an attribute of an allocation. Of a mapping it does so too: memory that can be moved may be
 * exported as a descriptor for the library's sake, which the program did not ask for. False: the driver's own answer
 * holds. ret_value has room for a value of that attribute.
 */
bool ll_backed_attribute(const struct ll_extent *plain, enum ll_cu_pointer_attribute attribute, void *ret_value);

/*
 * Sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. The driver has no such attribute of mapped memory, so all synchronous
 * operations of the current context wait from then on (CU_CTX_SYNC_MEMOPS), which is more than was asked for.
 * Errors of the driver: it cannot do that (before 12.1).
 */
ll_cu_result ll_backed_set_synced(const struct ll_extent *plain, bool is_synced);

/* The program has got a DMA buffer of the allocation, or a handle of it for other processes. */
void ll_backed_note_exported(const struct ll_extent *plain);

#endif
