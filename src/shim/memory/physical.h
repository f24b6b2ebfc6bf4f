/*
 * physical.h - physical memory made by cuMemCreate. It is charged when it is made. The charge is given back when the
 * last handle is released and the last mapping is undone.
 *
 * The library counts handles and mappings as the driver does, by the handles' numbers. A handle keeps its number while
 * it is mapped, whether it was released or not. The map of extents has one extent for the memory, by its handle, and
 * one for each mapping, by its address.
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

/* The driver has mapped the memory at that address. */
void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, ll_cu_mem_handle handle);

#endif
