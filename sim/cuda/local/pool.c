/*
 * The implementation of pools: blocks, chunks, and when they are returned.
 */
#include "cuda/local/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "card/defaults.h"
#include "card/engine.h"
#include "card/holding.h"
#include "cuda/local/allocations.h"
#include "cuda/local/arena.h"
#include "cuda/local/graph_memory.h"

static struct ll_cu_mem_pool *pools;
static struct ll_cu_mem_pool *current[SIM_CARDS]; /* by device; NULL: the default one */
static uint64_t last_token;

bool sim_pool_is_known(const struct ll_cu_mem_pool *pool)
{
	for (const struct ll_cu_mem_pool *p = pools; p; p = p->next) {
		if (p == pool)
			return !p->is_destroyed;
	}
	return false;
}

struct ll_cu_mem_pool *sim_pool_new(ll_cu_device device)
{
	struct ll_cu_mem_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return NULL;
	pool->device = device;
	pool->card = sim_cuda.devices[device];
	pool->max_bytes = SIM_NEVER;
	pool->freed_slot = SIM_NONE;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

static uint64_t range_bytes(const struct ll_cu_mem_pool *pool)
{
	return (uint64_t)pool->chunk_count * SIM_POOL_CHUNK_BYTES;
}

static void remove_pool(struct ll_cu_mem_pool *pool)
{
	struct ll_cu_mem_pool **link = &pools;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	sim_pool_trim(pool, 0);
	if (pool->address) {
		munmap((void *)(uintptr_t)pool->address, range_bytes(pool));
		if (!pool->is_managed)
			munmap(pool->bytes_at, range_bytes(pool));
	}
	free(pool->is_backed);
	free(pool);
}

void sim_pool_destroy(struct ll_cu_mem_pool *pool)
{
	pool->is_destroyed = true;
	if (current[pool->device] == pool)
		current[pool->device] = NULL;
	if (!pool->blocks)
		remove_pool(pool);
}

static struct ll_cu_mem_pool *find_default(ll_cu_device device, bool is_managed)
{
	for (struct ll_cu_mem_pool *pool = pools; pool; pool = pool->next) {
		if (pool->is_default && pool->device == device && pool->is_managed == is_managed)
			return pool;
	}
	struct ll_cu_mem_pool *pool = sim_pool_new(device);
	if (pool) {
		pool->is_default = true;
		pool->is_managed = is_managed;
	}
	return pool;
}

struct ll_cu_mem_pool *sim_pool_default(ll_cu_device device)
{
	return find_default(device, false);
}

struct ll_cu_mem_pool *sim_pool_default_managed(ll_cu_device device)
{
	return find_default(device, true);
}

struct ll_cu_mem_pool *sim_pool_current(ll_cu_device device)
{
	return current[device] ? current[device] : sim_pool_default(device);
}

void sim_pool_set_current(ll_cu_device device, struct ll_cu_mem_pool *pool)
{
	current[device] = pool;
}

/* The range is twice as large as the card: even if gaps cannot be used, physical memory runs out before addresses
 * do. */
static int reserve_range(struct ll_cu_mem_pool *pool)
{
	uint64_t card_bytes = sim_cuda.world->cards[pool->card].memory_bytes;
	uint32_t count = (uint32_t)(2 * card_bytes / SIM_POOL_CHUNK_BYTES + 1);
	uint64_t length = (uint64_t)count * SIM_POOL_CHUNK_BYTES;
	bool *is_backed = calloc(count, sizeof *is_backed);
	if (!is_backed || sim_arena_new(length, &pool->arena_offset) < 0) {
		free(is_backed);
		return -ENOMEM;
	}
	char *address = sim_addresses_new(length, SIM_POOL_CHUNK_BYTES, 0);
	char *bytes_at = address ? sim_arena_map(pool->arena_offset, length, pool->is_managed ? address : NULL) : NULL;
	if (!bytes_at) {
		if (address)
			munmap(address, length);
		free(is_backed);
		return -ENOMEM;
	}
	pool->address = (uintptr_t)address;
	pool->bytes_at = bytes_at;
	pool->chunk_count = count;
	pool->is_backed = is_backed;
	return 0;
}

static bool has_block_in(const struct ll_cu_mem_pool *pool, uint64_t offset, uint64_t bytes)
{
	for (const struct sim_block *b = pool->blocks; b && b->offset < offset + bytes; b = b->next) {
		if (b->offset + b->room > offset)
			return true;
	}
	return false;
}

static bool end_loan(uint32_t share_number)
{
	sim_lock(sim_cuda.world);
	bool is_last = sim_share_end_loan(sim_cuda.world, share_number - 1);
	sim_unlock(sim_cuda.world);
	return is_last;
}

/* Ends the loans that begin in a chunk. Returns false if other processes hold some of it; the bytes then stay. */
static bool end_loans(struct ll_cu_mem_pool *pool, uint64_t offset)
{
	bool is_free = true;
	for (struct sim_lent **link = &pool->lent, *lent; (lent = *link);) {
		bool is_here = lent->offset < offset + SIM_POOL_CHUNK_BYTES && lent->offset + lent->room > offset;
		if (!is_here) {
			link = &lent->next;
			continue;
		}
		is_free &= end_loan(lent->share_number);
		*link = lent->next;
		free(lent);
	}
	return is_free;
}

static void give_chunk_back(struct ll_cu_mem_pool *pool, uint32_t chunk)
{
	struct sim_world *w = sim_cuda.world;
	pool->is_backed[chunk] = false;
	pool->reserved_bytes -= SIM_POOL_CHUNK_BYTES;
	if (end_loans(pool, chunk * SIM_POOL_CHUNK_BYTES))
		sim_arena_clear(pool->arena_offset + chunk * SIM_POOL_CHUNK_BYTES, SIM_POOL_CHUNK_BYTES);
	if (pool->is_managed)
		return;
	sim_lock(w);
	sim_holding_give_back(w, sim_cuda.proc, pool->card, SIM_POOL_CHUNK_BYTES);
	sim_unlock(w);
}

void sim_pool_trim(struct ll_cu_mem_pool *pool, uint64_t keep_bytes)
{
	for (uint32_t i = pool->chunk_count; i-- > 0 && pool->reserved_bytes > keep_bytes;) {
		uint64_t left = pool->reserved_bytes - SIM_POOL_CHUNK_BYTES;
		if (left < keep_bytes)
			break;
		if (pool->is_backed[i] && !has_block_in(pool, i * SIM_POOL_CHUNK_BYTES, SIM_POOL_CHUNK_BYTES))
			give_chunk_back(pool, i);
	}
}

/* Returns how many chunks behind the last one are backed too, if the pool grows (a card's pool-extra). */
static uint64_t extra_chunks(const struct ll_cu_mem_pool *pool, uint64_t last)
{
	uint64_t most = sim_cuda.world->cards[pool->card].pool_extra_bytes / SIM_POOL_CHUNK_BYTES;
	uint64_t left = pool->chunk_count - 1 - last;
	return most < left ? most : left;
}

/* Backs every chunk of [offset, offset + room). If one cannot be backed, none is. */
static int back_chunks(struct ll_cu_mem_pool *pool, uint64_t offset, uint64_t room)
{
	struct sim_world *w = sim_cuda.world;
	uint64_t first = offset / SIM_POOL_CHUNK_BYTES, last = (offset + room - 1) / SIM_POOL_CHUNK_BYTES, bytes = 0;
	if (last >= pool->chunk_count)
		return -ENOMEM;
	for (uint64_t i = first; i <= last; i++)
		bytes += pool->is_backed[i] ? 0 : SIM_POOL_CHUNK_BYTES;
	for (uint64_t more = bytes ? extra_chunks(pool, last) : 0; more; more--)
		bytes += pool->is_backed[++last] ? 0 : SIM_POOL_CHUNK_BYTES;
	uint64_t limit = pool->max_bytes;
	if (limit != SIM_NEVER)
		limit = (limit + SIM_POOL_CHUNK_BYTES - 1) / SIM_POOL_CHUNK_BYTES * SIM_POOL_CHUNK_BYTES;
	if (bytes && pool->reserved_bytes + bytes > limit)
		return -ENOMEM;
	if (bytes && !pool->is_managed) {
		sim_lock(w);
		sim_advance_to_now(w);
		int rc = sim_holding_take(w, sim_cuda.proc, pool->card, bytes);
		sim_unlock(w);
		if (rc < 0)
			return rc;
	}
	for (uint64_t i = first; i <= last; i++)
		pool->is_backed[i] = true;
	pool->reserved_bytes += bytes;
	if (pool->reserved_high_bytes < pool->reserved_bytes)
		pool->reserved_high_bytes = pool->reserved_bytes;
	return 0;
}

/* Finds a block that this stream has freed. Later allocations in the stream follow that free, so the block is a gap for
 * this stream alone. */
static struct sim_block *find_own(struct ll_cu_mem_pool *pool, uint64_t room, const struct ll_cu_stream *stream)
{
	for (struct sim_block *b = pool->blocks; b; b = b->next) {
		if (b->token && b->room >= room && b->stream_slot == stream->slot &&
		    b->stream_generation == stream->generation)
			return b;
	}
	return NULL;
}

static void insert_block(struct ll_cu_mem_pool *pool, struct sim_block *block)
{
	struct sim_block **link = &pool->blocks;
	while (*link && (*link)->offset < block->offset)
		link = &(*link)->next;
	block->next = *link;
	*link = block;
}

static void note_lent(struct ll_cu_mem_pool *pool, const struct sim_block *block)
{
	const struct sim_world *w = sim_cuda.world;
	uint32_t share = block->share_number - 1;
	sim_lock(sim_cuda.world);
	bool is_held = sim_share_is_held(w, share, w->shares[share].generation);
	sim_unlock(sim_cuda.world);
	struct sim_lent *lent = is_held ? malloc(sizeof *lent) : NULL;
	if (!lent) {
		end_loan(block->share_number);
		return;
	}
	*lent = (struct sim_lent){block->share_number, block->offset, block->room, pool->lent};
	pool->lent = lent;
}

static void drop_block(struct ll_cu_mem_pool *pool, struct sim_block *block)
{
	if (block->share_number)
		note_lent(pool, block);
	struct sim_block **link = &pool->blocks;
	while (*link != block)
		link = &(*link)->next;
	*link = block->next;
	pool->used_bytes -= block->bytes;
	free(block);
	if (pool->is_destroyed && !pool->blocks)
		remove_pool(pool);
}

static bool is_backed(const struct ll_cu_mem_pool *pool, uint64_t offset, uint64_t room)
{
	uint64_t last = (offset + room - 1) / SIM_POOL_CHUNK_BYTES;
	for (uint64_t i = offset / SIM_POOL_CHUNK_BYTES; i <= last; i++) {
		if (i >= pool->chunk_count || !pool->is_backed[i])
			return false;
	}
	return true;
}

/* Returns the first place in [offset, end) for which the pool need not grow, or SIM_NEVER. Returned memory may leave
 * such a place behind a place without memory. */
static uint64_t find_backed(const struct ll_cu_mem_pool *pool, uint64_t offset, uint64_t end, uint64_t room)
{
	while (offset < end && end - offset >= room) {
		if (is_backed(pool, offset, room))
			return offset;
		offset = (offset / SIM_POOL_CHUNK_BYTES + 1) * SIM_POOL_CHUNK_BYTES;
	}
	return SIM_NEVER;
}

/* Returns the first gap for which the pool need not grow, or else the first gap of all. */
static uint64_t first_gap(const struct ll_cu_mem_pool *pool, uint64_t room)
{
	uint64_t offset = 0, first = SIM_NEVER, found = SIM_NEVER;
	for (const struct sim_block *b = pool->blocks; b && found == SIM_NEVER;
	     offset = b->offset + b->room, b = b->next) {
		found = find_backed(pool, offset, b->offset, room);
		if (first == SIM_NEVER && b->offset - offset >= room)
			first = offset;
	}
	if (found == SIM_NEVER)
		found = find_backed(pool, offset, (uint64_t)pool->chunk_count * SIM_POOL_CHUNK_BYTES, room);
	return found != SIM_NEVER ? found : first != SIM_NEVER ? first : offset;
}

/* Chooses the place of the block, and backs it. */
static int find_place(struct ll_cu_mem_pool *pool, struct sim_block *block, const struct ll_cu_stream *stream)
{
	struct sim_block *own = find_own(pool, block->room, stream);
	if (own) {
		block->offset = own->offset;
		own->offset += block->room;
		own->room -= block->room;
		pool->used_bytes -= own->bytes;
		own->bytes = 0;
		return 0; /* without room it is removed when its stream reaches the free */
	}
	block->offset = first_gap(pool, block->room);
	int rc = back_chunks(pool, block->offset, block->room);
	if (rc < 0) {
		for (struct ll_cu_mem_pool *p = pools; p; p = p->next)
			if (p->card == pool->card)
				sim_pool_trim(p, 0);
		rc = back_chunks(pool, block->offset, block->room);
	}
	return rc;
}

ll_cu_result sim_pool_allocate(struct ll_cu_mem_pool *pool, size_t bytes, const struct ll_cu_stream *stream,
			       uint64_t *ret_address)
{
	uint64_t room;
	if (__builtin_add_overflow(bytes, SIM_POOL_BLOCK_BYTES - 1, &room) || room > INT64_MAX)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	struct sim_block *block = calloc(1, sizeof *block);
	if (!block)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	block->room = room / SIM_POOL_BLOCK_BYTES * SIM_POOL_BLOCK_BYTES;
	block->bytes = bytes;
	if ((!pool->address && reserve_range(pool) < 0) || find_place(pool, block, stream) < 0) {
		free(block);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct sim_memory memory = {
	    .address = pool->address + block->offset,
	    .bytes = bytes,
	    .bytes_at = pool->bytes_at + block->offset,
	    .kind = SIM_MEMORY_DEVICE,
	    .origin = SIM_ORIGIN_POOL,
	    .card = pool->card,
	    .offset = pool->arena_offset + block->offset,
	    .pool = pool,
	    .whole_address = pool->address + block->offset / SIM_POOL_CHUNK_BYTES * SIM_POOL_CHUNK_BYTES,
	    .whole_bytes = SIM_POOL_CHUNK_BYTES,
	};
	insert_block(pool, block);
	pool->used_bytes += bytes;
	if (sim_memory_insert(&memory) < 0) {
		drop_block(pool, block);
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (pool->used_high_bytes < pool->used_bytes)
		pool->used_high_bytes = pool->used_bytes;
	*ret_address = memory.address;
	return LL_CUDA_SUCCESS;
}

static struct sim_block *block_of(const struct sim_memory *memory)
{
	uint64_t offset = memory->address - memory->pool->address;
	struct sim_block *block = memory->pool->blocks;
	while (block->offset != offset || block->token)
		block = block->next;
	return block;
}

void sim_pool_free_now(const struct sim_memory *memory)
{
	struct ll_cu_mem_pool *pool = memory->pool;
	struct sim_block *block = block_of(memory);
	block->share_number = memory->share_number;
	sim_memory_remove(memory);
	pool->freed_slot = SIM_NONE;
	drop_block(pool, block);
}

uint64_t sim_pool_begin_free(const struct sim_memory *memory, const struct ll_cu_stream *stream)
{
	struct ll_cu_mem_pool *pool = memory->pool;
	struct sim_block *block = block_of(memory);
	block->token = ++last_token;
	block->share_number = memory->share_number;
	block->stream_slot = pool->freed_slot = stream->slot;
	block->stream_generation = pool->freed_generation = stream->generation;
	sim_memory_remove(memory);
	return block->token;
}

void sim_freed_in_order(const struct sim_action *action)
{
	const struct sim_memory *memory = sim_memory_find((uintptr_t)action->user);
	if (action->graph) {
		sim_graph_memory_freed(action->graph);
		return;
	}
	if (!action->pool) {
		if (memory && memory->address == (uintptr_t)action->user && memory->kind == SIM_MEMORY_DEVICE)
			sim_memory_free(memory);
		return;
	}
	for (struct sim_block *b = action->pool->blocks; b; b = b->next) {
		if (b->token == action->bytes) {
			drop_block(action->pool, b);
			return;
		}
	}
}

void sim_pools_synchronised(const struct ll_cu_stream *stream)
{
	for (struct ll_cu_mem_pool *pool = pools; pool; pool = pool->next) {
		if (!stream || (pool->freed_slot == stream->slot && pool->freed_generation == stream->generation))
			sim_pool_trim(pool, pool->threshold_bytes);
	}
}
