/*
 * physical.h - physical memory made by cuMemCreate: charged when it is made, given back when its last handle is
 * released and its last mapping undone.
 *
 * The driver counts handles and mappings; so do we, by the numbers that it answers with. A handle keeps its number
 * while it is mapped, released or not. The map of extents has one extent for the memory, by its handle, and one for
 * each mapping, by its address. Memory on the host is not charged. What was imported from another process is
 * charged there: its exporter's number is not known here, and passes. An exporter that has released and unmapped what
 * it exported is not charged any more, though the importer keeps it on the card; nor are mappings into sparse arrays
 * counted.
 */
#ifndef LOADLINE_SHIM_MEMORY_PHYSICAL_H
#define LOADLINE_SHIM_MEMORY_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/memory/charge.h"

/* The driver has made it; the charge becomes its own. */
void ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle);

/* The driver has given another handle to it: the same number once more. */
void ll_physical_retain(ll_cu_mem_handle handle);

/* Released and unmapped by these calls of the driver. */
ll_cu_result ll_physical_release(ll_cu_mem_handle handle, ll_cu_result (*release)(ll_cu_mem_handle));
ll_cu_result ll_physical_unmap(ll_cu_deviceptr address, size_t bytes, ll_cu_result (*unmap)(ll_cu_deviceptr, size_t));

/* The driver has mapped it there. */
void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, ll_cu_mem_handle handle);

#endif
