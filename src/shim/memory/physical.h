/*
 * physical.h - physical memory made by cuMemCreate. It is charged when it is made. The charge is given back when the
 * last handle is released and the last mapping is undone.
 *
 * The library counts handles and mappings as the driver does, by the handles' numbers. A handle keeps its number while
 * it is mapped, whether it was released or not. The map of extents has one extent for the memory, by its handle, and
 * one for each mapping, by its address.
 *
 * A mapping's extent has all that is needed to undo the mapping and to map the same memory there again with the same
 * rights: handle, offset, size, and what cuMemSetAccess allowed.
 *
 * Stand-ins. When memory leaves the card and returns, it is other memory for the driver and has another handle. So an
 * evictable program gets a number of the library's for each handle, a stand-in, and the library puts the driver's
 * handle in its place in every call (ll_physical_find). No handle of the driver has such a number. The library holds
 * one handle of the driver's as long as the program holds the memory by a handle or by a mapping. Memory that others
 * can see, or that the library could not make again, is pinned: it stays on the card. That is memory which was
 * exported or bound to a multicast object, or which the host can access. Memory with compression, memory for sparse
 * arrays, and memory for other kinds of export gets no stand-in, and stays on the card too.
 *
 * Memory on the host is not charged. Memory that was exported or imported is charged by exported.h. A process does not
 * know how large memory is that it has imported from a process that is not governed, until it maps the memory: the
 * driver maps whole memory alone. Mappings into sparse arrays are not counted.
 */
#ifndef LOADLINE_SHIM_MEMORY_PHYSICAL_H
#define LOADLINE_SHIM_MEMORY_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/memory/charge.h"

/* Whether memory that the program asks for in this way can be moved. */
bool ll_physical_can_move(const struct ll_cu_mem_allocation_prop *prop, unsigned long long flags);

/* What to ask the driver for in its place: the same, which can be shared. */
struct ll_cu_mem_allocation_prop ll_physical_movable(const struct ll_cu_mem_allocation_prop *prop);

/* The driver has made the memory. Its extent takes over the charge. asked: what the program asked for, if the memory is
 * one that can be moved; else NULL. Returns the number that the program gets. */
ll_cu_mem_handle ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle,
				 const struct ll_cu_mem_allocation_prop *asked);

/* The driver's handle for a number that the program uses as a handle. False: it is a stand-in of memory that is gone,
 * or of which the program holds no handle: CUDA_ERROR_INVALID_VALUE. */
bool ll_physical_find(ll_cu_mem_handle number, ll_cu_mem_handle *ret_handle);

/* The memory with this stand-in is pinned from now on, or all memory with stand-ins that is mapped in the range. Other
 * memory is not moved in any case. */
void ll_physical_pin(ll_cu_mem_handle number);
void ll_physical_pin_range(ll_cu_deviceptr address, size_t bytes);

/* Whether the program asked for memory that can be exported so. True for what has no stand-in: the driver knows. */
bool ll_physical_may_export(ll_cu_mem_handle number, enum ll_cu_mem_handle_type type);

/* The program has exported the memory, as *shareable of that type. */
void ll_physical_exported(ll_cu_mem_handle number, enum ll_cu_mem_handle_type type, const void *shareable);

/* The driver has imported the memory, which has one more handle with that number. Releases it again if the limit
 * refuses it: LL_CUDA_ERROR_OUT_OF_MEMORY. */
ll_cu_result ll_physical_imported(ll_cu_mem_handle handle, enum ll_cu_mem_handle_type type, const void *shareable);

/* Before the driver maps so many bytes of the memory: charges them if the size was not known. Errors as above. */
ll_cu_result ll_physical_before_map(ll_cu_mem_handle number, size_t bytes);

/* The driver has given one more handle of the memory, with the same number. */
void ll_physical_retain(ll_cu_mem_handle handle);

/* If memory with a stand-in is mapped at the address, gives one more handle of it. False: there is none, and the driver
 * is to be asked. */
bool ll_physical_retain_at(uint64_t address, ll_cu_mem_handle *ret_number);

/* Puts what the program asked for into the driver's answer about the memory. */
void ll_physical_describe(ll_cu_mem_handle number, struct ll_cu_mem_allocation_prop *prop);

/* Do cuMemRelease and cuMemUnmap, with the driver's functions as their last parameters. */
ll_cu_result ll_physical_release(ll_cu_mem_handle handle, ll_cu_result (*release)(ll_cu_mem_handle));
ll_cu_result ll_physical_unmap(ll_cu_deviceptr address, size_t bytes, ll_cu_result (*unmap)(ll_cu_deviceptr, size_t));

/* The driver has mapped the memory, from that offset on, at that address. */
void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle);

/* The access of a mapping: two bits for each of this process's first cards, with the values of
 * enum ll_cu_mem_access_flags. */
enum { LL_PHYSICAL_CARDS = 31 };

/* The bit of an access that a location outside of these cards has, such as the host. Which one is not known. The bit
 * stays until the memory is unmapped. */
#define LL_PHYSICAL_ACCESS_ELSEWHERE (UINT64_C(1) << (2 * LL_PHYSICAL_CARDS))

/* What the card may do with the mapping. device: 0 to LL_PHYSICAL_CARDS - 1. */
static inline enum ll_cu_mem_access_flags ll_physical_access(const struct ll_extent *mapping, ll_cu_device device)
{
	return (enum ll_cu_mem_access_flags)(mapping->access >> (2 * device) & 3);
}

/* The driver has set these rights for all mappings in the range. Locations that are not named keep theirs. */
void ll_physical_accessed(ll_cu_deviceptr address, size_t bytes, const struct ll_cu_mem_access_desc *accesses,
			  size_t count);

/* ---- for whoever moves memory while the program's calls are shut (chunks.h) ---- */

/* Whether the memory of this extent, of kind LL_EXTENT_PHYSICAL, can leave the card now. */
bool ll_physical_is_movable(const struct ll_extent *physical);

/* Undoes all mappings of the memory and lets it go; or makes memory again, and maps it where it was mapped, with the
 * same rights. The number is the stand-in. */
void ll_physical_unmake(ll_cu_mem_handle number);
ll_cu_result ll_physical_make(ll_cu_mem_handle number, ll_cu_mem_handle *ret_handle);

#endif
