/*
 * memory.h - the memory of the card that this process has: what it is charged, where it is, and what the program is
 * told. Pools and graphs are in pools.h.
 */
#ifndef LOADLINE_SHIM_MEMORY_MEMORY_H
#define LOADLINE_SHIM_MEMORY_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "abi/cuda_memory.h"
#include "shim/device_state.h"
#include "shim/interpose/reentry.h"
#include "shim/link/port.h"

/* ---- the map of extents ---- */

/*
 * The map of the memory that this process has on its cards: one extent for each allocation, in the order of
 * addresses.
 *
 * An extent holds the address, size, kind, card and charge of an allocation. The charge is returned when the allocation
 * is freed (charge.c). An allocation without an address has a handle instead. In the map, extents with addresses come
 * first. Extents with handles follow, ordered by kind and then by handle.
 *
 * The map is an array of sorted chunks of 64 extents: a B+ tree of two levels. Finding takes two binary searches.
 * Inserting and removing move up to 64 extents; if a chunk is split or joined, the later part of the array moves too:
 * 16 bytes for each 32 to 64 extents. This happens at most once in 32 changes. One lock guards the map; it is not held
 * during calls of the driver.
 *
 * The driver may reuse an address as soon as it is freed. So the order of the calls is:
 *
 *     put      after the driver has returned the address
 *     take     before the driver is asked to free it; put again if the driver refuses
 *
 * Extents do not overlap. If a new extent overlaps older ones, the program has freed the older ones in a way that the
 * library does not see.
 *
 * A forked child begins with an empty map, because the parent's allocations do not belong to it. No function changes
 * errno.
 */

struct ll_device_state;
struct ll_graph_memory;
struct ll_movable_pool;
struct ll_pool;

/* One number may be an address and a handle at the same time, or a handle of several kinds. */
enum ll_extent_kind {
	LL_EXTENT_PLAIN,   /* addresses from cuMemAlloc and similar functions */
	LL_EXTENT_BLOCK,   /* addresses in a pool; the pool is charged (pools.h), or the block itself if is_backed */
	LL_EXTENT_MAPPING, /* addresses where physical memory is mapped; the physical memory is charged (physical.c) */
	LL_EXTENT_ARRAY,   /* handles of arrays; all following kinds are handles too */
	LL_EXTENT_MIPMAP,
	LL_EXTENT_EXTERNAL, /* imported memory */
	LL_EXTENT_GREEN,    /* green contexts */
	LL_EXTENT_CONTEXT,  /* contexts (charge.c) */
	LL_EXTENT_POOL,     /* memory pools, charged by pools.h */
	LL_EXTENT_PHYSICAL, /* physical memory of cuMemCreate, mapped or not */
	LL_EXTENT_GRAPH,    /* executable graphs that allocate, charged by graph_memory.c */
	LL_EXTENT_OPENED,  /* addresses from cuIpcOpenMemHandle, stored as handles; `count` is the number of opens after
			      the first */
	LL_EXTENT_BACKING, /* physical memory of plain allocations; the key is the address where it is mapped
			      (backing.c) */
	LL_EXTENT_KINDS,
};

/* Returns whether extents of this kind have addresses and not handles. */
static inline bool ll_extent_has_address(enum ll_extent_kind kind)
{
	return kind <= LL_EXTENT_MAPPING;
}

struct ll_extent {
	uint64_t address;            /* address of the first byte, or the handle; an address is never 0 */
	uint64_t bytes;              /* the size that the program asked for; 0: not known */
	uint64_t charged_bytes;      /* 0: the extent is not charged, or another extent or object is charged for it */
	struct ll_device_state *dev; /* the card; its claim is charged */
	uint64_t owner;              /* number of the context that the memory ends with (charge.c); 0: none */
	uint64_t shared;             /* id of exported or imported memory, which exported.c charges; 0: none */
	union {
		struct ll_pool *pool; /* for a pool, and for a block of it that is not backed */
		struct {
			struct ll_movable_pool *movable; /* for a backed block (movable_pool.c) */
			uint64_t room_bytes;             /* the block's size on the card */
			uint64_t told_bytes; /* the size that the block would take in a pool of the driver */
		};
		struct {
			uint64_t handle; /* for a mapping and a backing: the physical memory's handle */
			uint64_t offset; /* offset of the mapping's first byte in the physical memory, in bytes */
			uint64_t access; /* the access rights of the cards (physical.c) */
		};
		struct {
			uint32_t handles, mappings; /* for physical memory: how many hold it */
			uint64_t real;              /* the driver's handle if `address` is a stand-in (physical.c) */
			uint64_t mapped_at;         /* the address where it was last mapped */
		};
		uint64_t count;                /* for a context: number of uses after the first */
		struct ll_graph_memory *graph; /* for a graph */
	};
	enum ll_extent_kind kind;
	bool is_backed;   /* for a plain extent and a block: its memory is in backings that the library made */
	bool is_synced;   /* if is_backed: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is set */
	bool is_exported; /* if is_backed: the program has a DMA buffer of it, or a handle for other processes */
	bool is_stand_in, is_pinned, is_rdma_capable; /* for physical memory: see physical.c */
	uint8_t handle_types; /* for physical memory: the handle types for which the program may export it */
	/* for physical memory and its mappings: distinguishes it from later memory with the same handle; if is_backed,
	 * and for backings: their number (backing.c); for a block that is being freed: the number of the free (gaps.c)
	 */
	uint32_t serial;
};

/* Converts a handle to the address of an extent. */
static inline uint64_t ll_extent_handle(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/*
 * Puts the extent into the map. Returns 0. Returns -EEXIST if the extent overlaps another one: removes that extent,
 * writes it to ret_stale, and the caller must call again. Returns -ENOMEM if there is no memory; then nothing is
 * changed.
 */
int ll_extents_put(const struct ll_extent *extent, struct ll_extent *ret_stale);

/* Removes the extent of this kind that begins at the address. Returns false if there is none. */
bool ll_extents_remove(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent);

/* Finds the extent of this kind that begins at the address. Returns false if there is none. */
bool ll_extents_find(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent);

/* Finds the plain extent, block or mapping that contains the address. Returns false if there is none. */
bool ll_extents_find_containing(uint64_t address, struct ll_extent *ret_extent);

/* Finds the backing that contains the address. Returns false if there is none. */
bool ll_extents_find_backing(uint64_t address, struct ll_extent *ret_backing);

/*
 * Finds the first extent after *extent in the order of the map: first all extents with addresses, then all extents with
 * handles, kind by kind. Begin with an extent that is all zero. Returns false if there are no more. The map may change
 * between two calls.
 */
bool ll_extents_next(struct ll_extent *extent);

/*
 * Calls change() to change an extent in the map. change() must not change address and kind. If it returns false, the
 * extent is removed. The map's lock is held meanwhile. *ret_before: the extent before the change; ret_before may be
 * NULL. Returns false if there is no such extent.
 */
bool ll_extents_change(enum ll_extent_kind kind, uint64_t address,
		       bool (*change)(struct ll_extent *extent, uint64_t argument), uint64_t argument,
		       struct ll_extent *ret_before);

/* Defines a change that sets one field to the argument. */
#define LL_EXTENT_SETTER(name, field)                                                                                  \
	static bool name(struct ll_extent *extent, uint64_t value)                                                     \
	{                                                                                                              \
		extent->field = value;                                                                                 \
		return true;                                                                                           \
	}

/* Removes all extents of the context, and returns the sum of their charges. Visits every extent. */
uint64_t ll_extents_remove_owned(uint64_t owner);

/* Returns the number of extents, and in ret_chunks the number of chunks. For tests. */
size_t ll_extents_count(size_t *ret_chunks);

/* ---- what an allocation takes of a card ---- */

/*
 * Computes how much memory of the card an allocation takes. Pure arithmetic; all sizes are in bytes.
 *
 * The numbers were measured on an H200, driver 580 (doc/facts.md). If a size overflows, the result is UINT64_MAX, which
 * no limit allows.
 */

#define LL_FOOTPRINT_BLOCK_BYTES UINT64_C(0x200000)         /* 2 MiB, the card's page */
#define LL_FOOTPRINT_POOL_STEP_BYTES UINT64_C(0x2000000)    /* 32 MiB, a pool's step */
#define LL_FOOTPRINT_POOL_BLOCK_BYTES UINT64_C(512)         /* a block of a pool takes a multiple of this */
#define LL_FOOTPRINT_GREEN_CONTEXT_BYTES UINT64_C(0xa00000) /* 10 MiB */

/* Rounds up to a multiple of unit, which is a power of two. 0 stays 0. */
uint64_t ll_footprint_round(uint64_t bytes, uint64_t unit);

/*
 * Returns the size of a plain allocation. An allocation of up to 1 MiB takes its own size, rounded up to 512 bytes. A
 * larger one takes blocks of 2 MiB. Small allocations share blocks of 2 MiB. So for each context the driver may use up
 * to one block more than the sum of these sizes, and also the gaps that freed allocations leave.
 */
uint64_t ll_footprint_plain(uint64_t bytes);

/* Returns the size of an allocation of cuMemAllocPitch with rows of width_bytes. Each row begins at a multiple of 512
 * bytes. */
uint64_t ll_footprint_pitched(uint64_t width_bytes, uint64_t height);

/*
 * Returns the size of an array, or of a mipmap with this number of levels (an array has 1). The hardware stores it in
 * tiles with rows of 64 bytes. The number of rows is rounded up to a tile: up to 128 rows, or 8 rows by 16 planes in
 * three dimensions. Returns 0 if the array takes no memory when it is made (a sparse one is mapped later), or if no
 * driver accepts its shape.
 */
uint64_t ll_footprint_array(const struct ll_cu_array3d_descriptor *shape, unsigned levels);

struct ll_footprint_card {
	unsigned sm_count;
	unsigned threads_per_sm;
};

/*
 * Returns the size of a new context: 2 MiB for each SM, and a stack for each thread that the card can run at the same
 * time. For an H200 with the default stack of 1024 bytes this is 528 MiB (measured: 526.8); without stacks 264 MiB
 * (measured: 262.8). For an A100 it is 432 MiB, for a T4 120 MiB.
 */
uint64_t ll_footprint_context(const struct ll_footprint_card *card, uint64_t stack_bytes);

/* Returns the size of a context's stacks. */
uint64_t ll_footprint_stacks(const struct ll_footprint_card *card, uint64_t stack_bytes);

/* ---- graphs ---- */

/*
 * Computes the most memory that the allocating nodes of a graph can take on a card. Pure arithmetic.
 *
 * Each node has a fixed address range from the time when it is made. If the memory of two nodes is not needed at the
 * same time, they may have the same addresses and then share the memory. The driver takes memory in steps of 32 MiB
 * (doc/facts.md).
 */

/* The allocation of a node. */
struct ll_graph_block {
	ll_cu_device device;
	uint64_t address, bytes;
};

/* Sorts blocks by card and then by address, as ll_graph_need expects them. */
void ll_graph_need_sort(struct ll_graph_block *blocks, size_t count);

/* Returns the bytes that the blocks of the first block's card take: the sum of their joined address ranges, each
 * rounded up. The blocks are sorted. *ret_count: number of blocks of this card. */
uint64_t ll_graph_need(const struct ll_graph_block *blocks, size_t count, size_t *ret_count);

/* ---- charges ---- */

/*
 * The steps that every hook of an allocating function takes before and after the driver's call.
 *
 *     if (ll_charge_passes())
 *             return ll_real()->cuMemAlloc_v2(ret_address, bytes);
 *     LL_REENTRY_SCOPE();
 *     LL_CHARGE(charge, ll_charge_target_current(), ll_footprint_plain(bytes));
 *     if (charge.refusal)
 *             return charge.refusal;
 *     ll_cu_result status = ll_real()->cuMemAlloc_v2(ret_address, bytes);
 *     if (status == LL_CUDA_SUCCESS)
 *             ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes, 0);
 *     return status;
 *
 * The hook reserves the bytes before it calls the driver. If the hook does not keep the charge, the end of the scope
 * returns the bytes. This happens if the driver refused, if the thread was cancelled, or if an exception unwound the
 * scope.
 *
 * If the limit refuses the bytes, this process gives up the memory that its pools keep in reserve
 * (ll_device_state_give_up_reserve), and the hook tries to reserve the bytes again.
 *
 * If the driver does not report the context or the card of the call, the hook returns the driver's error, because the
 * allocation could not be charged.
 *
 * The driver may be out of memory although the limit has room, because a process has just died and its memory is not
 * free yet. So if a process with memory on the card died within the last second, LL_CHARGED_CALL asks the driver again
 * until that memory is free.
 *
 * A process may have no device state of the card, because loadlined does not reply or has no free claim. Then the
 * allocation is refused if the user asked for limits. Otherwise the allocation is made without a charge. If other
 * processes have cleared the claim, the next call that needs it takes a new claim (ll_device_state_retake). While there
 * is no claim, the program continues with the contexts that it has.
 */

/* The target of a charge: the state of a card, and the context whose end frees the memory. */
struct ll_charge_target {
	struct ll_device_state *dev; /* NULL: nothing is charged */
	uint64_t owner;              /* the context's number (charge.c); 0: the memory stays when contexts end */
	ll_cu_result refusal;        /* if dev is NULL: the user asked for limits, or the card is not known */
};

struct ll_charge {
	struct ll_charge_target target;
	uint64_t bytes;
	ll_cu_result refusal; /* the result that the hook must return; LL_CUDA_SUCCESS: call the driver */
};

/* Returns true if the hook must pass the call to the driver without a charge, because the process is not governed or
 * because the driver itself made the call. Two loads. */
static inline bool ll_charge_passes(void)
{
	return !ll_device_state_is_governed() || ll_reentry_is_inside();
}

/* Returns true if no driver can make this allocation, because ret_answer is NULL or because the bytes exceed any
 * address space. Then the hook passes the call to the driver, and the driver returns its own error. */
static inline bool ll_charge_is_hopeless(const void *ret_answer, uint64_t bytes)
{
	return !ret_answer || bytes >> 57;
}

/* Returns the target for memory of a card, named by its ordinal, that belongs to no context. Takes a claim on the card
 * if the process has none. */
struct ll_charge_target ll_charge_target_of_device(ll_cu_device device);

/* Does the same as ll_device_state_reserve. First it settles exported memory of dead processes, and memory that this
 * process carries although no process uses it any more (exported.c). */
int ll_charge_reserve(struct ll_device_state *dev, uint64_t bytes);

#define LL_CHARGE(charge, target, bytes)                                                                               \
	struct ll_charge charge __attribute__((cleanup(ll_charge_end))) = ll_charge_begin(target, bytes)

struct ll_charge ll_charge_begin(struct ll_charge_target target, uint64_t bytes);
void ll_charge_end(struct ll_charge *charge);

#define LL_CHARGED_CALL(status, dev, call)                                                                             \
	ll_cu_result status;                                                                                           \
	uint64_t status##_since_ns = 0;                                                                                \
	do {                                                                                                           \
		status = call;                                                                                         \
	} while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_charge_waits(dev, &status##_since_ns))

/* Returns whether the hook must call the driver again. Waits 2 ms before it returns true, unless the process has given
 * up a reserve of movable memory. Returns false when a second has passed since the first call. *since_ns is 0 before
 * the first call. dev may be NULL. */
bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns);

/* Corrects a charge if the allocation took another size than was reserved. If it took more, the rest is charged even
 * above the limit, because the memory is already allocated. */
void ll_charge_correct(struct ll_charge *charge, uint64_t bytes);

/*
 * Call it when the driver has made the allocation. bytes: its size; 0: address is a handle. Puts its extent into the
 * map. If there is no memory for the extent, the allocation is not charged, because the library could not find the
 * charge when the allocation is freed. backed_serial: of a plain allocation of memory that can be moved (backing.c); 0:
 * the driver made it.
 */
void ll_charge_keep(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes,
		    uint32_t backed_serial);

/* Call it after the driver's call that frees an allocation whose extent ll_extents_remove has removed. Returns the
 * charge. If the driver refused, puts the extent into the map again. */
void ll_charge_freed(const struct ll_extent *extent, ll_cu_result status);

/* Puts the extent into the map, and returns the charges of the extents that it overlaps. Returns false if there is no
 * memory for it. */
bool ll_charge_put(const struct ll_extent *extent);

/* Returns the charge of an extent that is no longer in the map. */
void ll_charge_release(const struct ll_extent *extent);

/* ---- memory that processes share ---- */

/*
 * Charges memory that processes share: memory that was exported as a descriptor or a handle, memory shared
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
 * A process identifies the memory of a descriptor by the descriptor's id (exported.c). It identifies the memory of a
 * handle of bytes by the hash of the bytes; the exporter or the first importer writes hash and id into the file. If a
 * process cannot identify the memory, it is charged as if no other process held it.
 *
 * The size of memory from a process that is not governed may be unknown. Such memory is charged when it is first mapped
 * or opened.
 */

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
void ll_exported_drop(uint64_t id);

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

/* ---- memory of cuMemCreate ---- */

/*
 * Physical memory made by cuMemCreate. It is charged when it is made. The charge is returned when the last
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
 * Memory on the host is not charged. Memory that was exported or imported is charged by exported.c. If a process
 * imports memory from a process that is not governed, it learns the memory's size when it maps the memory, because the
 * driver only maps whole memory. Mappings into sparse arrays are not counted.
 */

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

/* Call it when the driver has given one more handle of the memory, with the same number. Returns false if the memory is
 * not known. */
bool ll_physical_retain(ll_cu_mem_handle handle);

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

/* ---- plain allocations that can be evicted ---- */

/*
 * Plain allocations whose memory can be evicted from the card and resumed at the same addresses.
 *
 * Memory of the driver's cuMemAlloc cannot be separated from its address. So for an evictable program the library makes
 * plain allocations itself: it reserves addresses, makes physical memory, maps the memory, and allows access. An
 * allocation of more than 1 MiB has its own physical memory, in chunks of at most LL_BACKING_CHUNK_BYTES. Smaller
 * allocations share blocks of 2 MiB, as the driver's own small allocations do. The library keeps one empty block per
 * card while there is a context.
 *
 * If a context of one card enables access to a context of another card (cuCtxEnablePeerAccess), the driver lets the
 * first card use all cuMemAlloc memory of the second, allocated before or after. Mapped memory has its own access
 * rights, so the library gives each chunk the rights that backing.c keeps.
 *
 * Each chunk is an extent of kind LL_EXTENT_BACKING. The allocation itself, which the program sees and which is
 * charged, is an extent of kind LL_EXTENT_PLAIN with is_backed, or of kind LL_EXTENT_BLOCK if it was allocated in
 * stream order (movable_pool.c). Any thread may call these functions.
 */

/* The calls for a chunk of this size take 0.05 ms, its copy 5 ms (doc/facts.md). */
#define LL_BACKING_CHUNK_BYTES UINT64_C(0x10000000)

/* Returns whether the driver and the card support such allocations. Asks the driver. */
bool ll_backing_is_possible(ll_cu_device device);

/* Returns whether an allocation of this size has its own memory, which is made chunk by chunk. */
bool ll_backing_has_chunks(uint64_t bytes);

/*
 * Makes an allocation as cuMemAlloc does. The address is a multiple of 512. The caller puts the allocation's extent
 * with the returned serial, which is never 0, into the map. Returns LL_CUDA_ERROR_OUT_OF_MEMORY if the card or the host
 * has no memory.
 *
 * wait: a function that is called when the card has no memory for a chunk. since_ns: when this began (ll_now_ns). It
 * returns true to try again. No lock is held, and the function may let the chunks that exist already be evicted and
 * resumed. NULL: the allocation does not wait. An allocation without chunks never waits.
 */
typedef bool ll_backing_wait(struct ll_device_state *dev, uint64_t since_ns);
ll_cu_result ll_backing_allocate(struct ll_device_state *dev, uint64_t bytes, ll_backing_wait *wait,
				 ll_cu_deviceptr *ret_address, uint32_t *ret_serial);

/* Returns a number that no other allocation has had; never 0. */
uint32_t ll_backing_new_serial(void);

/* Frees an allocation. The caller has removed its extent from the map. */
void ll_backing_free(const struct ll_extent *plain);

/* Frees all allocations that belong to a context that ends. Their extents stay in the map. */
void ll_backing_free_owned(uint64_t owner);

/* Returns the sum of all chunks of the card, in bytes. One load. */
uint64_t ll_backing_bytes(const struct ll_device_state *dev);

/*
 * ll_backing_make makes physical memory for a chunk, maps it at the chunk's address, and allows access to its card and
 * its peers. ll_backing_unmake unmaps the chunk and releases its memory. The code that moves chunks calls them while
 * the program's calls are shut (time/driver_calls.h).
 */
ll_cu_result ll_backing_make(ll_cu_device device, uint64_t address, uint64_t bytes, uint64_t *ret_handle);
void ll_backing_unmake(uint64_t address, uint64_t bytes, uint64_t handle);

/* Writes the new handle of a chunk that was made again into its extent. */
void ll_backing_note(uint64_t address, uint64_t handle);

/* ---- cards that use the memory of others ---- */

/*
 * Keeps which cards may use the backed allocations (backing.c) of which other cards.
 *
 * A context of one card can enable access to the memory of a context of another card (cuCtxEnablePeerAccess). The
 * driver grants this right to a pair of contexts. Mapped memory has rights for cards. So the library counts the pairs
 * of contexts for each pair of cards, and withdraws the right when the last pair has disabled it. The library does not
 * notice if a pair ends with one of its contexts. Then the right stays. A right that is not needed does no harm, but a
 * missing right ends the program. A pool whose memory another card may use (cuMemPoolSetAccess) counts as a pair too.
 */

/* Call these when the driver has enabled or disabled access of the current context to the memory of context `peer`.
 * ll_peers_enabled returns the driver's error if the driver refuses the right to a backed allocation. Then the function
 * disables the pair again. */
ll_cu_result ll_peers_enabled(struct ll_cu_context *peer);
void ll_peers_disabled(struct ll_cu_context *peer);

/* Call it when a pool of card `of` allows card `user` to use its memory, or no longer allows it. Returns the driver's
 * error if the driver refuses the right to a backed allocation. */
ll_cu_result ll_peers_of_pool(struct ll_device_state *of, ll_cu_device user, bool is_allowed);

/* ---- answers for such allocations ---- */

/*
 * Makes the driver's query functions answer for a backed allocation (backing.c) as they answer for an
 * allocation of the driver's cuMemAlloc or for a block of the driver's pools (movable_pool.c).
 *
 * To the driver a backed allocation is mapped physical memory in a reservation of whole blocks. So the driver would
 * report the reservation's range, no context, and export handle types. It would give a handle of the memory. It would
 * also accept addresses around an allocation that belong to no allocation. So a hook first calls ll_backed_find for an
 * address. If the address is not in an allocation of the program, the hook asks the driver about LL_BACKED_NOWHERE
 * instead. This is not an address of the card, so the driver returns its own error.
 *
 * The driver cannot share mapped memory by legacy IPC (cuIpcGetMemHandle). The library shares it (residency/shares.c).
 *
 * The driver's id of a range changes when the memory is evicted and resumed, and small allocations share one range. So
 * the library gives its own ids. They begin at LL_BACKED_FIRST_ID, above the driver's ids.
 */

#define LL_BACKED_NOWHERE ((ll_cu_deviceptr)1)
#define LL_BACKED_FIRST_ID (UINT64_C(1) << 48)

enum ll_backed {
	LL_BACKED_NOT,        /* not the library's; the driver answers */
	LL_BACKED_ALLOCATION, /* in an allocation of the program */
	LL_BACKED_GAP,        /* in the library's memory, and in no allocation */
	LL_BACKED_MAPPING,    /* in memory that the program has mapped itself (physical.c) */
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

/* ---- chunks that can be moved ---- */

/*
 * The physical memory of this process that can be moved, chunk by chunk: the memory of plain allocations
 * (backing.c), and memory that the program made itself by cuMemCreate (physical.c).
 *
 * The code that moves chunks calls these functions while the program's calls are shut (time/driver_calls.h).
 */

struct ll_chunk {
	enum ll_extent_kind kind; /* LL_EXTENT_BACKING or LL_EXTENT_PHYSICAL */
	uint64_t address; /* the address where the chunk is mapped; for memory of cuMemCreate: the handle that the
			     program has */
	uint64_t bytes;
	ll_cu_mem_handle handle; /* the driver's handle; valid while the chunk is on the card */
};

/*
 * Finds the next chunk of the card after the extent *at, and writes its extent to *at. Begin with an extent that is all
 * zero except for its kind, LL_CHUNKS_FIRST. Returns false if there are no more chunks.
 */
#define LL_CHUNKS_FIRST LL_EXTENT_PHYSICAL
bool ll_chunks_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_chunk *ret_chunk);

/* Returns the sum of all chunks of the card, in bytes. Visits every chunk of memory of cuMemCreate. */
uint64_t ll_chunks_bytes(const struct ll_device_state *dev);

/* Returns the sum of the charges for the memory in all chunks of the card. It is less than ll_chunks_bytes if small
 * allocations share chunks. */
uint64_t ll_chunks_charged_bytes(const struct ll_device_state *dev);

/* ll_chunk_unmake unmaps the chunk and releases its memory. ll_chunk_make makes memory for it, maps the memory with the
 * same rights, and writes the chunk's handle. The contents are undefined. */
void ll_chunk_unmake(const struct ll_chunk *chunk);
ll_cu_result ll_chunk_make(const struct ll_device_state *dev, struct ll_chunk *chunk);

/* Notes that a chunk that was made again is complete. */
void ll_chunk_note(const struct ll_chunk *chunk);

/*
 * Maps memory of any card at an address that the library reserves, for one copy. The card of dev may read and write it
 * there. On failure nothing stays mapped or reserved.
 */
ll_cu_result ll_chunk_map_aside(const struct ll_device_state *dev, ll_cu_mem_handle handle, uint64_t bytes,
				ll_cu_deviceptr *ret_address);
void ll_chunk_unmap_aside(ll_cu_deviceptr address, uint64_t bytes);

/* ---- contexts ---- */

/*
 * The contexts of this process, the charge of each, and the allocations that belong to it.
 *
 * A context takes memory of the card when it is made, and more when its limits are raised. The library estimates this
 * memory first (extents.c) and reserves it. If another context of the card is current, the library later replaces the
 * estimate by the measured difference in free memory. It does so only if the difference is between 0.5 and 1.5 times
 * the estimate, because other processes may allocate at the same time. The limits of stack, heap and printf are charged
 * when they are set, although the driver allocates the heap and the printf buffer with the first kernel that needs
 * them.
 *
 * The driver may reuse a context's handle. So the library gives each context a number that no later context gets. The
 * number is stored with each allocation, and the allocation's charge ends with the context. Allocations of contexts
 * that the library does not know (those of green contexts) end with the card's primary context.
 *
 * The library makes or ends only one context of a card at a time, as the driver does. So it can distinguish the first
 * retain of a primary context from later ones.
 */

/* Returns the charge target of the calling thread's current context. */
struct ll_charge_target ll_charge_target_current(void);

/* Returns the context with that number; NULL: it has ended. Visits every context. */
struct ll_cu_context *ll_context_of_owner(uint64_t owner);

struct ll_context_change {
	struct ll_device_state *dev; /* NULL: not governed */
	struct ll_charge charge;
	ll_cu_result refusal; /* the result that the hook returns: the library's refusal or the driver's error;
				 LL_CUDA_SUCCESS: none */
	uint64_t free_bytes;  /* free memory before the call; 0: not known */
	bool is_locked;
};

/*
 * Use it around the driver's call that makes a context on the card. refusal is the result that the hook returns to the
 * program: out of memory if the limit has no room; not permitted if the user asked for limits that cannot be enforced
 * (ll_device_state_refuses). The change ends with its scope.
 *
 *     LL_CONTEXT_CHANGE(change, ll_context_begin(device));
 *     if (change.refusal)
 *             return change.refusal;
 *     ...
 *     ll_context_made(&change, context);
 */
#define LL_CONTEXT_CHANGE(change, begin)                                                                               \
	struct ll_context_change change __attribute__((cleanup(ll_context_change_end))) = begin
struct ll_context_change ll_context_begin(ll_cu_device device);
void ll_context_made(struct ll_context_change *change, struct ll_cu_context *context);
void ll_context_change_end(struct ll_context_change *change);

/* The card has no memory for the context: returns whether others have left for it, so that the driver is to be asked
 * again. *grants: 0 at its first call. */
typedef bool ll_context_wait(struct ll_context_change *change, unsigned *grants);

/* Does cuCtxDestroy and its variants. `destroy` is the driver's function. */
ll_cu_result ll_context_destroy(struct ll_cu_context *context, ll_cu_result (*destroy)(struct ll_cu_context *));

/* Do cuCtxAttach and cuCtxDetach. The context ends with its last use. The call that made it counts as the first use. */
ll_cu_result ll_context_attach(struct ll_cu_context **ret_context, unsigned flags);
ll_cu_result ll_context_detach(struct ll_cu_context *context);

/* Do cuDevicePrimaryCtxRetain, -Release and -Reset for the card's primary context. release and reset are the driver's
 * functions. */
ll_cu_result ll_context_retain(struct ll_cu_context **ret_context, ll_cu_device device, ll_context_wait *waits);
ll_cu_result ll_context_release(ll_cu_device device, ll_cu_result (*release)(ll_cu_device));
ll_cu_result ll_context_reset(ll_cu_device device, ll_cu_result (*reset)(ll_cu_device));

/* Make and destroy a green context. The driver makes the card's primary context together with the first green context,
 * and ends it with the last one. */
ll_cu_result ll_context_create_green(struct ll_cu_green_context **ret_green, struct ll_cu_resource_desc *resources,
				     ll_cu_device device, unsigned flags);
ll_cu_result ll_context_destroy_green(struct ll_cu_green_context *green);

/* Does cuCtxSetLimit for the current context, and charges the memory that the limit needs. */
ll_cu_result ll_context_set_limit(enum ll_cu_limit limit, size_t value);

#endif
