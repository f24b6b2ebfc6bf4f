/*
 * sizes.h - what each living allocation of this process was charged, by the address or handle that the program knows it
 * by.
 *
 * A hash table in 64 parts, each with its own lock: putting and taking cost some 50 ns. An address is the driver's to
 * give again from the moment that it is freed, so:
 *
 *     put      after the driver has given it; what the table had under that name is stale, and handed back
 *     take     before the driver is asked to free it; put again when it refuses
 *
 * What was never put is not found, and its free passes through. A forked child begins with nothing: the parent's
 * allocations are not its own. errno is kept.
 */
#ifndef LOADLINE_SHIM_MEMORY_SIZES_H
#define LOADLINE_SHIM_MEMORY_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_device_state;

/* Names of different kinds may be the same number. */
enum ll_size_kind {
	LL_SIZE_ADDRESS, /* ll_cu_deviceptr */
	LL_SIZE_ARRAY,   /* pointers, as the following */
	LL_SIZE_MIPMAP,
	LL_SIZE_EXTERNAL, /* imported memory */
	LL_SIZE_GREEN,    /* green contexts */
	LL_SIZE_CONTEXT,  /* contexts (contexts.h) */
	LL_SIZE_POOL,     /* pools: thing is a struct ll_pool; charged by pools.h */
	LL_SIZE_BLOCK,    /* addresses in a pool: the same; bytes are not charged apart */
	LL_SIZE_PHYSICAL, /* handles of cuMemCreate: thing is a struct ll_physical; charged by physical.h */
	LL_SIZE_MAPPING,  /* addresses where one is mapped: the same */
	LL_SIZE_GRAPH,    /* executable graphs that have their memory: bytes is a count of pools.c; not charged apart */
};

struct ll_size {
	uint64_t bytes;
	struct ll_device_state *dev; /* whose claim is charged */
	uint64_t owner;              /* the context that it goes with (contexts.h); 0: none */
	void *thing;                 /* what else the kind keeps of it */
};

/* False: there is no memory for it. With ret_stale: what was under that name before; all zero when nothing was. */
bool ll_sizes_put(enum ll_size_kind kind, uint64_t name, const struct ll_size *size, struct ll_size *ret_stale);

/* Finds it and takes it out; false: not known. */
bool ll_sizes_take(enum ll_size_kind kind, uint64_t name, struct ll_size *ret_size);

/* Finds it; false: not known. */
bool ll_sizes_find(enum ll_size_kind kind, uint64_t name, struct ll_size *ret_size);

/* Takes out all that goes with that context, and adds up its bytes. Looks at everything. */
uint64_t ll_sizes_take_owned(uint64_t owner);

/* How many there are, for tests. */
size_t ll_sizes_count(void);

#endif
