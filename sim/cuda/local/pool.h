/*
 * pool.h - pools of device memory, as cuMemAllocAsync uses them. A pool has one range of addresses, backed by physical
 * memory in chunks of SIM_POOL_CHUNK_BYTES, and blocks in it, first fit.
 *
 * A block that is freed in a stream's order becomes a gap for all when the stream reaches the free, and at once for
 * allocations in the same stream. A chunk without blocks is returned to the card, down to the release threshold, when
 * the program has waited for a context, or for a stream in which memory was freed. A pool belongs to the process, not
 * to a context.
 *
 * A block goes into the first gap for which the pool need not grow, otherwise into the first gap of all. Two gaps with
 * a block between them are not joined. So a pool may grow although its free memory is enough in total.
 *
 * Measured on an H200 (driver 580): chunks, `used` in the requested bytes, blocks of 512, first fit across chunks.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_POOL_H
#define LOADLINE_SIM_CUDA_LOCAL_POOL_H

#include "cuda/local/state.h"

/* offset and room are multiples of SIM_POOL_BLOCK_BYTES; bytes is the requested size. */
struct sim_block {
	uint64_t offset, room, bytes;
	uint64_t token; /* of the queued free, or 0: in use */
	uint32_t stream_slot, stream_generation;
	uint32_t share_number; /* of a freed block that was lent: as in struct sim_memory */
	struct sim_block *next;
};

/* A block that was freed while another process had imported it. It stays lent until its first chunk is returned. */
struct sim_lent {
	uint32_t share_number;
	uint64_t offset, room;
	struct sim_lent *next;
};

struct ll_cu_mem_pool {
	uint32_t card;
	ll_cu_device device;
	enum ll_cu_mem_handle_type handle_types;
	bool is_default;
	bool is_managed;   /* the host accesses it at the same addresses, and it takes no memory of the card */
	bool is_imported;  /* it is another process's: no memory can be allocated from it here */
	bool is_destroyed; /* by the program; freed with its last block */
	uint64_t address;  /* of its range, or 0 before the first allocation */
	char *bytes_at;    /* its bytes in this process */
	uint64_t arena_offset;
	uint64_t max_bytes;
	uint32_t chunk_count;     /* of its range */
	bool *is_backed;          /* each chunk */
	struct sim_block *blocks; /* sorted by offset */
	struct sim_lent *lent;
	uint64_t reserved_bytes, reserved_high_bytes, used_bytes, used_high_bytes;
	uint64_t threshold_bytes;
	uint64_t peers;                        /* other devices that may access it: one bit for each */
	int reuse[3];                          /* three attributes that are stored and have no effect */
	uint32_t freed_slot, freed_generation; /* the stream in which memory was last freed */
	uint32_t ticket_number;                /* of an exported or imported pool */
	int32_t ticket_pid;
	struct ll_cu_mem_pool *next;
};

/* Returns whether a handle is a pool that the program may use. */
bool sim_pool_is_known(const struct ll_cu_mem_pool *pool);

/* Makes a pool of a device. NULL: out of memory. */
struct ll_cu_mem_pool *sim_pool_new(ll_cu_device device);

/* Destroys a pool for the program. It is freed with its last block. */
void sim_pool_destroy(struct ll_cu_mem_pool *pool);

/* Return a device's own pools, which are made at the first call. NULL: out of memory. */
struct ll_cu_mem_pool *sim_pool_default(ll_cu_device device);
struct ll_cu_mem_pool *sim_pool_default_managed(ll_cu_device device);

/* Returns the pool that cuMemAllocAsync uses. NULL: out of memory. */
struct ll_cu_mem_pool *sim_pool_current(ll_cu_device device);

/* Sets the pool that cuMemAllocAsync uses. NULL: the default one. */
void sim_pool_set_current(ll_cu_device device, struct ll_cu_mem_pool *pool);

/* Allocates a block for a stream, and adds its address to the table. OUT_OF_MEMORY. */
ll_cu_result sim_pool_allocate(struct ll_cu_mem_pool *pool, size_t bytes, const struct ll_cu_stream *stream,
			       uint64_t *ret_address);

/* Begins the free of a block in a stream's order, and removes its address from the table. Returns the block's token for
 * the action of the queued free. */
uint64_t sim_pool_begin_free(const struct sim_memory *memory, const struct ll_cu_stream *stream);

/* Ends a free in a stream's order (action: of the kind SIM_ACTION_FREE): the stream has reached it. It frees memory of
 * any kind. */
void sim_freed_in_order(const struct sim_action *action);

/* Frees a block at once, because the program has waited. */
void sim_pool_free_now(const struct sim_memory *memory);

/* Returns chunks without blocks to the card, from the end, while more than keep_bytes are reserved. */
void sim_pool_trim(struct ll_cu_mem_pool *pool, uint64_t keep_bytes);

/* Trims pools to their thresholds after the program has waited for a stream. NULL: for a context; all pools are
 * trimmed. */
void sim_pools_synchronised(const struct ll_cu_stream *stream);

#endif
