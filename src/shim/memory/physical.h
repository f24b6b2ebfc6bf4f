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
 * Memory on the host is not charged. Memory that was imported from another process is charged in that process: the
 * library does not know its number here, and passes the calls on. If the exporter has released and unmapped the memory,
 * nobody is charged for it, although the importer keeps it on the card. Mappings into sparse arrays are not counted.
 */
#ifndef LOADLINE_SHIM_MEMORY_PHYSICAL_H
#define LOADLINE_SHIM_MEMORY_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/memory/charge.h"

/* The driver has made the memory. Its extent takes over the charge. */
void ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle);

/* The driver has given one more handle of the memory, with the same number. */
void ll_physical_retain(ll_cu_mem_handle handle);

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

#endif
