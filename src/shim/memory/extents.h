/*
 * extents.h - the one map of what this process has of its cards: an extent for each allocation, in the order of
 * addresses.
 *
 * An extent says where the memory is, how large it is, of what kind, on which card, and what it was charged. Its charge
 * is given back when it is freed (charge.h). An allocation without an address has a handle. Each kind of handle has an
 * order of its own. These orders follow the order of addresses.
 *
 * The map is an array of sorted chunks of 64 extents: a B+ tree of two levels. Finding takes two binary searches.
 * Inserting and removing move up to 64 extents; a chunk that is split or joined moves the array's later part too, 16
 * bytes for each 32 to 64 extents, and that happens once in 32 changes at most. One lock guards the map; it is not held
 * during calls of the driver.
 *
 * The driver may give an address again from the moment that it is freed. So:
 *
 *     put      after the driver has given the address
 *     take     before the driver is asked to free it; put again if the driver refuses
 *
 * No two extents overlap. If one is put over others, the program has freed those in a way that the library does not
 * see.
 *
 * A forked child begins with an empty map: the parent's allocations are not its own. No function changes errno.
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

/* The same number may be an address and a handle, and a handle of several kinds. */
enum ll_extent_kind {
	LL_EXTENT_PLAIN,   /* addresses of cuMemAlloc and its like */
	LL_EXTENT_BLOCK,   /* addresses in a pool. The pool is charged (pools.h), or the block if is_backed */
	LL_EXTENT_MAPPING, /* addresses where physical memory is mapped; that is charged (physical.h) */
	LL_EXTENT_ARRAY,   /* handles of arrays; all following kinds are handles too */
	LL_EXTENT_MIPMAP,
	LL_EXTENT_EXTERNAL, /* imported memory */
	LL_EXTENT_GREEN,    /* green contexts */
	LL_EXTENT_CONTEXT,  /* contexts (contexts.h) */
	LL_EXTENT_POOL,     /* memory pools, charged by pools.h */
	LL_EXTENT_PHYSICAL, /* physical memory of cuMemCreate, mapped or not */
	LL_EXTENT_GRAPH,    /* executable graphs that allocate, charged by graph_memory.h */
	LL_EXTENT_OPENED,   /* addresses that cuIpcOpenMemHandle gave, as handles; `count` is how often beyond the first
			     */
	LL_EXTENT_BACKING,  /* physical memory under plain addresses, by the address where it is mapped (backing.h) */
	LL_EXTENT_KINDS,
};

/* Whether the kind is known by addresses, not by handles. */
static inline bool ll_extent_has_address(enum ll_extent_kind kind)
{
	return kind <= LL_EXTENT_MAPPING;
}

struct ll_extent {
	uint64_t address;            /* of the first byte, or the handle; an address is never 0 */
	uint64_t bytes;              /* as the program asked for them; 0: not known */
	uint64_t charged_bytes;      /* 0: it is not charged, or something else is charged for it */
	struct ll_device_state *dev; /* the card, whose claim is charged */
	uint64_t owner;              /* the context that the memory goes with (contexts.h); 0: it outlives contexts */
	uint64_t shared; /* the id of exported memory, which is charged by exported.h; 0: nobody else has it */
	union {
		struct ll_pool *pool; /* of a pool, and of a block in it that is not backed */
		struct {
			struct ll_movable_pool *movable; /* of a block that is backed (movable_pool.h) */
			uint64_t room_bytes;             /* what it takes of the card */
			uint64_t told_bytes;             /* what it would take in a pool of the driver */
		};
		struct {
			uint64_t handle; /* of a mapping, and of a backing: the physical memory's */
			uint64_t offset; /* of its first byte in the physical memory, in bytes */
			uint64_t access; /* which cards may use it (physical.h) */
		};
		struct {
			uint32_t handles, mappings; /* of physical memory: what holds it */
			uint64_t real;              /* the driver's handle, if the number is a stand-in (physical.h) */
			uint64_t mapped_at;         /* where it was mapped last */
		};
		uint64_t count;                /* of a context: uses beyond the first */
		struct ll_graph_memory *graph; /* of a graph */
	};
	enum ll_extent_kind kind;
	bool is_backed;   /* of a plain one and a block: its memory is in backings, not of the driver's making */
	bool is_synced;   /* of a backed one: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is set */
	bool is_exported; /* of a backed one: the program has a DMA buffer of it, or a handle for other processes */
	bool is_stand_in, is_pinned, is_rdma_capable; /* of physical memory: see physical.h */
	uint8_t handle_types;                         /* of physical memory: what the program may export it as */
	/* of physical memory and its mappings: tells it from later memory of the same handle; of a backed one and of
	 * backings: their number (backed.h); of a block that is being freed: the free's number (gaps.h) */
	uint32_t serial;
};

/* A handle as the address of an extent. */
static inline uint64_t ll_extent_handle(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

/*
 * Puts the extent into the map. 0; -EEXIST: another extent was in the way; it is taken out and handed over, and this
 * one is to be put again; -ENOMEM: there is no memory for it, and nothing is changed.
 */
int ll_extents_put(const struct ll_extent *extent, struct ll_extent *ret_stale);

/* Takes out the extent of that kind that begins at the address. False: it is not known. */
bool ll_extents_remove(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent);

/* Finds the extent of that kind that begins at the address. False: it is not known. */
bool ll_extents_find(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent);

/* Finds the extent, of whatever kind, that the address lies in. False: there is none. */
bool ll_extents_find_containing(uint64_t address, struct ll_extent *ret_extent);

/* Finds the backing that the address lies in. False: there is none. */
bool ll_extents_find_backing(uint64_t address, struct ll_extent *ret_backing);

/*
 * Finds the first extent after *extent in the order of the map: all with addresses, then all with handles, kind by
 * kind. Begin with an extent that is all zero. False: there are no more. The map may change between two calls.
 */
bool ll_extents_next(struct ll_extent *extent);

/*
 * Lets change() change an extent in its place, all but its address and kind, and takes the extent out if change()
 * returns false. The lock is held meanwhile. *ret_before, which may be NULL, is the extent before. False: it is not
 * known.
 */
bool ll_extents_change(enum ll_extent_kind kind, uint64_t address,
		       bool (*change)(struct ll_extent *extent, uint64_t argument), uint64_t argument,
		       struct ll_extent *ret_before);

/* Takes out all extents of that context, and returns the sum of their charges. Looks at every extent. */
uint64_t ll_extents_remove_owned(uint64_t owner);

/* How many extents there are, and how many chunks they are in; for tests. */
size_t ll_extents_count(size_t *ret_chunks);

#endif
