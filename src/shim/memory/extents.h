/*
 * extents.h - the map of the memory that this process has on its cards: one extent for each allocation, in the order of
 * addresses.
 *
 * An extent holds the address, size, kind, card and charge of an allocation. The charge is returned when the allocation
 * is freed (charge.h). An allocation without an address has a handle instead. In the map, extents with addresses come
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
#ifndef LOADLINE_SHIM_MEMORY_EXTENTS_H
#define LOADLINE_SHIM_MEMORY_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_device_state;
struct ll_graph_memory;
struct ll_movable_pool;
struct ll_pool;

/* One number may be an address and a handle at the same time, or a handle of several kinds. */
enum ll_extent_kind {
	LL_EXTENT_PLAIN,   /* addresses from cuMemAlloc and similar functions */
	LL_EXTENT_BLOCK,   /* addresses in a pool; the pool is charged (pools.h), or the block itself if is_backed */
	LL_EXTENT_MAPPING, /* addresses where physical memory is mapped; the physical memory is charged (physical.h) */
	LL_EXTENT_ARRAY,   /* handles of arrays; all following kinds are handles too */
	LL_EXTENT_MIPMAP,
	LL_EXTENT_EXTERNAL, /* imported memory */
	LL_EXTENT_GREEN,    /* green contexts */
	LL_EXTENT_CONTEXT,  /* contexts (contexts.h) */
	LL_EXTENT_POOL,     /* memory pools, charged by pools.h */
	LL_EXTENT_PHYSICAL, /* physical memory of cuMemCreate, mapped or not */
	LL_EXTENT_GRAPH,    /* executable graphs that allocate, charged by graph_memory.h */
	LL_EXTENT_OPENED,  /* addresses from cuIpcOpenMemHandle, stored as handles; `count` is the number of opens after
			      the first */
	LL_EXTENT_BACKING, /* physical memory of plain allocations; the key is the address where it is mapped
			      (backing.h) */
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
	uint64_t owner;              /* number of the context that the memory ends with (contexts.h); 0: none */
	uint64_t shared;             /* id of exported or imported memory, which exported.h charges; 0: none */
	union {
		struct ll_pool *pool; /* for a pool, and for a block of it that is not backed */
		struct {
			struct ll_movable_pool *movable; /* for a backed block (movable_pool.h) */
			uint64_t room_bytes;             /* the block's size on the card */
			uint64_t told_bytes; /* the size that the block would take in a pool of the driver */
		};
		struct {
			uint64_t handle; /* for a mapping and a backing: the physical memory's handle */
			uint64_t offset; /* offset of the mapping's first byte in the physical memory, in bytes */
			uint64_t access; /* the access rights of the cards (physical.h) */
		};
		struct {
			uint32_t handles, mappings; /* for physical memory: how many hold it */
			uint64_t real;              /* the driver's handle if `address` is a stand-in (physical.h) */
			uint64_t mapped_at;         /* the address where it was last mapped */
		};
		uint64_t count;                /* for a context: number of uses after the first */
		struct ll_graph_memory *graph; /* for a graph */
	};
	enum ll_extent_kind kind;
	bool is_backed;   /* for a plain extent and a block: its memory is in backings that the library made */
	bool is_synced;   /* if is_backed: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is set */
	bool is_exported; /* if is_backed: the program has a DMA buffer of it, or a handle for other processes */
	bool is_stand_in, is_pinned, is_rdma_capable; /* for physical memory: see physical.h */
	uint8_t handle_types; /* for physical memory: the handle types for which the program may export it */
	/* for physical memory and its mappings: distinguishes it from later memory with the same handle; if is_backed,
	 * and for backings: their number (backed.h); for a block that is being freed: the number of the free (gaps.h)
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

/* Removes all extents of the context, and returns the sum of their charges. Visits every extent. */
uint64_t ll_extents_remove_owned(uint64_t owner);

/* Returns the number of extents, and in ret_chunks the number of chunks. For tests. */
size_t ll_extents_count(size_t *ret_chunks);

#endif
