/*
 * physical.h - physical memory made by cuMemCreate. It is charged when it is made. The charge is returned when the last
 * handle is released and the last mapping is removed.
 *
 * The library counts handles and mappings of each memory as the driver does, by the number of the handle. The memory
 * keeps this number while it is mapped, even if all handles were released. The map of extents has one extent for the
 * memory, by its handle, and one for each mapping, by its address.
 *
 * A mapping's extent has all data that is needed to remove the mapping and to map the same memory there again with the
 * same rights: handle, offset, size, and the rights that cuMemSetAccess gave.
 *
 * Stand-ins. When memory is evicted and resumed, the driver gives it a new handle. So an evictable program gets a
 * number of the library instead of each handle: a stand-in. In every call the library replaces the stand-in by the
 * driver's handle (ll_physical_find). No handle of the driver has such a number. The library keeps one handle of the
 * driver while the program holds the memory by a handle or by a mapping. Memory that others can see, or that the
 * library could not make again, is pinned: it stays on the card. This is memory that was exported or bound to a
 * multicast object, or that the host can access. Memory with compression, memory for sparse arrays, and memory for
 * other export types gets no stand-in and stays on the card too.
 *
 * Memory on the host is not charged. Memory that was exported or imported is charged by exported.h. If a process
 * imports memory from a process that is not governed, it learns the memory's size when it maps the memory, because the
 * driver only maps whole memory. Mappings into sparse arrays are not counted.
 */
#ifndef LOADLINE_SHIM_MEMORY_PHYSICAL_H
#define LOADLINE_SHIM_MEMORY_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/memory/charge.h"

/* Returns whether memory with these properties can be moved. */
bool ll_physical_can_move(const struct ll_cu_mem_allocation_prop *prop, unsigned long long flags);

/* Returns the properties with which the library asks the driver for such memory: the same, but exportable as a
 * descriptor. */
struct ll_cu_mem_allocation_prop ll_physical_movable(const struct ll_cu_mem_allocation_prop *prop);

/* Call it when the driver has made the memory. Its extent takes over the charge. asked: the properties that the program
 * asked for, if the memory can be moved; else NULL. Returns the number that the program gets as the handle. */
ll_cu_mem_handle ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle,
				 const struct ll_cu_mem_allocation_prop *asked);

/* Gives the driver's handle for a number that the program uses as a handle. Returns false if the number is a stand-in
 * and the memory is gone or the program holds no handle of it. Then the hook returns CUDA_ERROR_INVALID_VALUE. */
bool ll_physical_find(ll_cu_mem_handle number, ll_cu_mem_handle *ret_handle);

/* Pin the memory of this stand-in, or all memory with stand-ins that is mapped in the range. Other memory is never
 * moved. */
void ll_physical_pin(ll_cu_mem_handle number);
void ll_physical_pin_range(ll_cu_deviceptr address, size_t bytes);

/* Returns whether the program asked for memory that can be exported as this type. Returns true for memory without a
 * stand-in, because the driver checks it. */
bool ll_physical_may_export(ll_cu_mem_handle number, enum ll_cu_mem_handle_type type);

/* Call it when the program has exported the memory as *shareable of this type. */
void ll_physical_exported(ll_cu_mem_handle number, enum ll_cu_mem_handle_type type, const void *shareable);

/* Call it when the driver has imported the memory and returned one more handle of it. If the limit refuses the memory,
 * releases the handle and returns LL_CUDA_ERROR_OUT_OF_MEMORY. */
ll_cu_result ll_physical_imported(ll_cu_mem_handle handle, enum ll_cu_mem_handle_type type, const void *shareable);

/* Call it before the driver maps `bytes` of the memory. Charges them if the size was not known. Returns the same error
 * as ll_physical_imported. */
ll_cu_result ll_physical_before_map(ll_cu_mem_handle number, size_t bytes);

/* Call it when the driver has given one more handle of the memory, with the same number. */
void ll_physical_retain(ll_cu_mem_handle handle);

/* If memory with a stand-in is mapped at the address, gives one more handle of it. Returns false if there is none; then
 * the hook must ask the driver. */
bool ll_physical_retain_at(uint64_t address, ll_cu_mem_handle *ret_number);

/* Replaces properties in the driver's answer by the properties that the program asked for. */
void ll_physical_describe(ll_cu_mem_handle number, struct ll_cu_mem_allocation_prop *prop);

/* Do cuMemRelease and cuMemUnmap, with the driver's functions as their last parameters. */
ll_cu_result ll_physical_release(ll_cu_mem_handle handle, ll_cu_result (*release)(ll_cu_mem_handle));
ll_cu_result ll_physical_unmap(ll_cu_deviceptr address, size_t bytes, ll_cu_result (*unmap)(ll_cu_deviceptr, size_t));

/* Call it when the driver has mapped the memory, from this offset on, at this address. */
void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle);

/* An extent's access has two bits for each of this process's first LL_PHYSICAL_CARDS cards, with the values of enum
 * ll_cu_mem_access_flags. */
enum { LL_PHYSICAL_CARDS = 31 };

/* This bit is set if another location, such as the host, has access. The library does not keep which one. The bit stays
 * until the memory is unmapped. */
#define LL_PHYSICAL_ACCESS_ELSEWHERE (UINT64_C(1) << (2 * LL_PHYSICAL_CARDS))

/* Returns the card's rights for the mapping. device: 0 to LL_PHYSICAL_CARDS - 1. */
static inline enum ll_cu_mem_access_flags ll_physical_access(const struct ll_extent *mapping, ll_cu_device device)
{
	return (enum ll_cu_mem_access_flags)(mapping->access >> (2 * device) & 3);
}

/* Call it when the driver has set these rights for all mappings in the range. Other locations keep their rights. */
void ll_physical_accessed(ll_cu_deviceptr address, size_t bytes, const struct ll_cu_mem_access_desc *accesses,
			  size_t count);

/* ---- for the code that moves memory while the program's calls are shut (chunks.h) ---- */

/* Returns whether the memory of this extent, of kind LL_EXTENT_PHYSICAL, can be evicted now. */
bool ll_physical_is_movable(const struct ll_extent *physical);

/* ll_physical_unmake removes all mappings of the memory and releases it. ll_physical_make makes the memory again, and
 * maps it at the same addresses with the same rights. number: the stand-in. */
void ll_physical_unmake(ll_cu_mem_handle number);
ll_cu_result ll_physical_make(ll_cu_mem_handle number, ll_cu_mem_handle *ret_handle);

#endif
