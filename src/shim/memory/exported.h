/*
 * exported.h - who is charged for memory that processes share: memory exported as a descriptor or a handle, by legacy
 * IPC, and blocks of exported pools.
 *
 * Such memory stays on the card until its last holder lets go, whoever made it. So its charge is not its extent's: the
 * extent has an id (`shared`), and one process of each tenant that holds the memory carries the charge for the tenant.
 * Another process of that tenant that imports the memory is charged nothing. A process of another tenant carries the
 * memory for its own tenant; so each tenant is charged for all that it holds.
 *
 * A file has who holds and who carries what (exported_table.h). Each process changes its own charge
 * alone, so a killed process leaves nothing charged:
 *
 * - A carrier lets go: it goes on carrying while others of the tenant, or open descriptors, hold the memory.
 * - The last one lets go: the carrier gives the charge back when it looks next. It looks when the limit refuses memory
 *   to a process of the tenant, and each second.
 * - A carrier dies: the next process of the tenant that reserves memory, or looks, carries what others still hold. A
 *   word of the job's orders tells of the death, and nothing is given to the tenant in between.
 *
 * Which memory it is a descriptor tells by its id (descriptor.h). A handle of bytes tells it by its hash; the exporter
 * or the first importer writes hash and id into the file. If a process cannot tell, it is charged as if it were alone.
 *
 * Memory of unknown size, from a process that is not governed, is charged when it is first mapped or opened.
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

/* The program has a handle of the memory of that extent, made of `size` bytes; or a descriptor. The extent of that kind
 * begins at the address. Its charge is carried from now on. */
void ll_exported_as_bytes(enum ll_extent_kind kind, uint64_t address, const void *handle, size_t size);
void ll_exported_as_descriptor(enum ll_extent_kind kind, uint64_t address, int fd);

/* ---- the importer ---- */

/* The id of the memory that the handle or the descriptor is of. A new one if it is not known. */
uint64_t ll_exported_id_of_bytes(struct ll_device_state *dev, const void *handle, size_t size);
uint64_t ll_exported_id_of_descriptor(struct ll_device_state *dev, int fd);

/*
 * This process holds the memory once more, and is charged for it if nobody of the tenant is. bytes: what it takes of
 * the card; 0: not known, then what others have said counts. LL_CUDA_ERROR_OUT_OF_MEMORY: the limit refuses it; then
 * the process does not hold it. Each use ends with ll_exported_drop.
 */
ll_cu_result ll_exported_hold(struct ll_device_state *dev, uint64_t id, uint64_t bytes);

/* The size of memory that this process holds is known now, if it was not yet. Errors as of ll_exported_hold. */
ll_cu_result ll_exported_set_size(struct ll_device_state *dev, uint64_t id, uint64_t bytes);

/* ---- both ---- */

/* A use has ended: the driver has freed, unmapped or closed it. */
void ll_exported_drop(struct ll_device_state *dev, uint64_t id);

/* A context has ended: ends the uses of all extents that belong to it, and takes these out of the map. */
void ll_exported_drop_owned(uint64_t owner);

/* Whether this process carries the memory, and another process of the tenant, a descriptor, or another use of this
 * process holds it. */
bool ll_exported_is_for_others(struct ll_device_state *dev, uint64_t id);

/* Lets the flow's agent look from now on. One store. */
void ll_exported_watch(void);

/* Carries what dead processes have carried, and gives back what nobody holds any more. True: it gave something back. */
bool ll_exported_settle(struct ll_device_state *dev);

/* Whether a process has died since the last time, so that memory which others hold may be charged to nobody. One call
 * and two loads. */
bool ll_exported_must_settle(const struct ll_device_state *dev);

#endif
