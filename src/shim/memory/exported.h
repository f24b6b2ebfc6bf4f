/*
 * exported.h - charges memory that processes share: memory that was exported as a descriptor or a handle, memory shared
 * by legacy IPC, and blocks of exported pools.
 *
 * Such memory stays on the card until its last holder releases it, also if the process that made it has released it. So
 * the extent does not have the charge. The extent has an id (`shared`), and one process of each tenant that holds the
 * memory carries the charge for the tenant. If another process of this tenant imports the memory, it is not charged. If
 * a process of another tenant imports it, that process carries the charge for its own tenant. So each tenant is charged
 * for all memory that it holds.
 *
 * A file lists the holders and the carriers of each memory (exported_table.h). Each process changes only its own
 * charge, so a killed process leaves no charge behind:
 *
 * - A carrier releases the memory: it still carries the charge while other processes of the tenant, or open
 * descriptors, hold it.
 * - The last holder releases the memory: the carrier returns the charge at its next check. It checks when the limit
 * refuses memory to a process of the tenant, and each second.
 * - A carrier dies: the next process of the tenant that reserves memory or checks then carries what others still hold.
 * A word of the job's orders reports the death, and loadlined grants the tenant no memory in between.
 *
 * A process identifies the memory of a descriptor by the descriptor's id (descriptor.h). It identifies the memory of a
 * handle of bytes by the hash of the bytes; the exporter or the first importer writes hash and id into the file. If a
 * process cannot identify the memory, it is charged as if no other process held it.
 *
 * The size of memory from a process that is not governed may be unknown. Such memory is charged when it is first mapped
 * or opened.
 */
#ifndef LOADLINE_SHIM_MEMORY_EXPORTED_H
#define LOADLINE_SHIM_MEMORY_EXPORTED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/memory/extents.h"

/* ---- the exporter ---- */

/* Notes that the program has exported the memory of an extent, as a handle of `size` bytes or as a descriptor. The
 * extent has this kind and begins at this address. From now on this process carries its charge. */
void ll_exported_as_bytes(enum ll_extent_kind kind, uint64_t address, const void *handle, size_t size);
void ll_exported_as_descriptor(enum ll_extent_kind kind, uint64_t address, int fd);

/* ---- the importer ---- */

/* Returns the id of the memory of a handle or a descriptor. If the memory is not known, returns a new id. */
uint64_t ll_exported_id_of_bytes(struct ll_device_state *dev, const void *handle, size_t size);
uint64_t ll_exported_id_of_descriptor(struct ll_device_state *dev, int fd);

/*
 * Adds a use of the memory by this process. If no process of the tenant is charged for the memory, this process is
 * charged. bytes: its size on the card; 0: not known, then the size that other processes wrote counts. Returns
 * LL_CUDA_ERROR_OUT_OF_MEMORY if the limit refuses it; then no use is added. Each use ends with ll_exported_drop.
 */
ll_cu_result ll_exported_hold(struct ll_device_state *dev, uint64_t id, uint64_t bytes);

/* Sets the size of memory that this process holds, if the size was not known. Returns the same errors as
 * ll_exported_hold. */
ll_cu_result ll_exported_set_size(struct ll_device_state *dev, uint64_t id, uint64_t bytes);

/* ---- both ---- */

/* Ends a use: the driver has freed, unmapped or closed the memory. */
void ll_exported_drop(struct ll_device_state *dev, uint64_t id);

/* Ends the uses of all extents that belong to a context that has ended, and removes these extents from the map. */
void ll_exported_drop_owned(uint64_t owner);

/* Returns whether this process carries the memory while another process of the tenant, a descriptor, or another use of
 * this process holds it. */
bool ll_exported_is_for_others(struct ll_device_state *dev, uint64_t id);

/* Makes the flow's agent check exported memory from now on. One store. */
void ll_exported_watch(void);

/* Takes over the charges that dead processes carried, and returns charges of memory that no process holds any more.
 * Returns true if it returned a charge. */
bool ll_exported_settle(struct ll_device_state *dev);

/* Returns whether a process has died since the last ll_exported_settle. Then memory that others hold may be charged to
 * no process. One call and two loads. */
bool ll_exported_must_settle(const struct ll_device_state *dev);

#endif
