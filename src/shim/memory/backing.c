#include "shim/memory/backing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/scope.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/memory/footprint.h"

/* Allocations of up to this size share blocks. */
#define SHARED_BYTES (LL_FOOTPRINT_BLOCK_BYTES / 2)

enum { CARDS = 64 }; /* number of bits in a mask of cards */
enum { STEP_BYTES = 512, BLOCK_STEPS = (int)(LL_FOOTPRINT_BLOCK_BYTES / STEP_BYTES), WORD_STEPS = 64 };

/* A block of 2 MiB that small allocations share. Each bit that is set stands for a step of 512 bytes in use. */
struct block {
	ll_cu_deviceptr address;
	struct ll_device_state *dev;
	unsigned used_steps;
	uint64_t used[BLOCK_STEPS / WORD_STEPS];
	struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static _Atomic uint64_t sums[CARDS]; /* sum of all chunks of a card, in bytes */
static _Atomic uint32_t last_serial;
static struct ll_fork_item fork_item;
static bool has_fork_item;

/* Forgets all memory, because the child has no memory of the parent on the card. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	blocks = NULL;
	for (int i = 0; i < CARDS; i++)
		atomic_store(&sums[i], 0);
}

/* ---- chunks ---- */

static int attribute_of(ll_cu_device device, enum ll_cu_device_attribute attribute)
{
	int value = 0;
	ll_cu_result status = ll_real()->cuDeviceGetAttribute(&value, attribute, device);
	return status == LL_CUDA_SUCCESS ? value : 0;
}

bool ll_backing_is_possible(ll_cu_device device)
{
	return LL_REAL_HAS(cuMemCreate) && LL_REAL_HAS(cuMemExportToShareableHandle) &&
	       attribute_of(device, LL_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

static uint64_t bit_of(ll_cu_device device)
{
	return UINT64_C(1) << device;
}

static uint64_t peers_of(ll_cu_device device)
{
	const struct ll_device_state *dev = ll_device_state_of(device);
	return dev ? atomic_load(&dev->peers) : 0;
}

/* Sets the rights of cards for a range. allowed and forbidden are masks of cards. A card that is in neither mask keeps
 * its rights. */
static ll_cu_result set_access(uint64_t address, uint64_t bytes, uint64_t allowed, uint64_t forbidden)
{
	struct ll_cu_mem_access_desc accesses[CARDS];
	size_t count = 0;
	for (ll_cu_device device = 0; device < CARDS; device++) {
		bool is_allowed = allowed & bit_of(device);
		if (!is_allowed && !(forbidden & bit_of(device)))
			continue;
		accesses[count++] = (struct ll_cu_mem_access_desc){
		    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device},
		    .flags = is_allowed ? LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE : LL_CU_MEM_ACCESS_FLAGS_PROT_NONE};
	}
	return count ? ll_real()->cuMemSetAccess(address, bytes, accesses, count) : LL_CUDA_SUCCESS;
}

ll_cu_result ll_backing_set_peer(struct ll_device_state *dev, ll_cu_device peer, bool is_allowed)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	struct ll_extent chunk = {.kind = LL_EXTENT_BACKING};
	uint64_t bit = bit_of(peer);
	if (is_allowed)
		atomic_fetch_or(&dev->peers, bit);
	else
		atomic_fetch_and(&dev->peers, ~bit);
	while (ll_extents_next(&chunk) && chunk.kind == LL_EXTENT_BACKING) {
		if (chunk.dev != dev)
			continue;
		ll_cu_result of_chunk =
		    set_access(chunk.address, chunk.bytes, is_allowed ? bit : 0, is_allowed ? 0 : bit);
		status = status ? status : of_chunk;
	}
	return status;
}

ll_cu_result ll_backing_make(ll_cu_device device, uint64_t address, uint64_t bytes, uint64_t *ret_handle)
{
	ll_cu_mem_handle handle;
	struct ll_cu_mem_allocation_prop prop = {
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
	    .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device},
	    .is_rdma_capable =
		(unsigned char)attribute_of(device, LL_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED),
	};
	ll_cu_result status = ll_real()->cuMemCreate(&handle, bytes, &prop, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuMemMap(address, bytes, 0, handle, 0);
	if (status == LL_CUDA_SUCCESS) {
		status = set_access(address, bytes, bit_of(device) | peers_of(device), 0);
		if (status != LL_CUDA_SUCCESS)
			ll_real()->cuMemUnmap(address, bytes);
	}
	if (status == LL_CUDA_SUCCESS)
		*ret_handle = handle;
	else
		ll_real()->cuMemRelease(handle);
	return status;
}

void ll_backing_unmake(uint64_t address, uint64_t bytes, uint64_t handle)
{
	ll_real()->cuMemUnmap(address, bytes);
	ll_real()->cuMemRelease(handle);
}

static bool set_handle(struct ll_extent *chunk, uint64_t handle)
{
	chunk->handle = handle;
	return true;
}

void ll_backing_note(uint64_t address, uint64_t handle)
{
	ll_extents_change(LL_EXTENT_BACKING, address, set_handle, handle, NULL);
}

/* 0 stands for allocations that are not backed. */
uint32_t ll_backing_new_serial(void)
{
	uint32_t serial;
	while (!(serial = atomic_fetch_add(&last_serial, 1) + 1))
		;
	return serial;
}

static void count_chunk(const struct ll_extent *chunk, bool is_more)
{
	if (chunk->kind == LL_EXTENT_BACKING)
		atomic_fetch_add(&sums[chunk->dev->device % CARDS], is_more ? chunk->bytes : -chunk->bytes);
}

uint64_t ll_backing_bytes(const struct ll_device_state *dev)
{
	return atomic_load(&sums[dev->device % CARDS]);
}

static ll_cu_result add_chunk(struct ll_device_state *dev, uint64_t address, uint64_t bytes)
{
	struct ll_extent stale, chunk = {.kind = LL_EXTENT_BACKING,
					 .address = address,
					 .bytes = bytes,
					 .dev = dev,
					 .serial = ll_backing_new_serial()};
	uint64_t peers = atomic_load(&dev->peers);
	ll_cu_result status = ll_backing_make(dev->device, address, bytes, &chunk.handle);
	if (status != LL_CUDA_SUCCESS)
		return status;
	int rc;
	while ((rc = ll_extents_put(&chunk, &stale)) == -EEXIST)
		count_chunk(&stale, false);
	if (rc == 0) {
		count_chunk(&chunk, true);
		/* Another thread may have changed the peers before the chunk was in the map. */
		uint64_t now = atomic_load(&dev->peers);
		set_access(address, bytes, now & ~peers, peers & ~now);
		return LL_CUDA_SUCCESS;
	}
	ll_backing_unmake(address, bytes, chunk.handle);
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

static void drop_chunks(uint64_t address, uint64_t bytes)
{
	struct ll_extent chunk;
	for (uint64_t at = address; at < address + bytes; at += LL_BACKING_CHUNK_BYTES) {
		if (!ll_extents_remove(LL_EXTENT_BACKING, at, &chunk))
			continue;
		count_chunk(&chunk, false);
		ll_backing_unmake(at, chunk.bytes, chunk.handle);
	}
}

static ll_cu_result await_chunk(struct ll_device_state *dev, uint64_t address, uint64_t bytes, ll_backing_wait *wait)
{
	uint64_t since_ns = wait ? ll_now_ns() : 0;
	ll_cu_result status;
	do
		status = add_chunk(dev, address, bytes);
	while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && wait && wait(dev, since_ns));
	return status;
}

/* Makes an allocation of whole blocks of 2 MiB. */
static ll_cu_result make_range(struct ll_device_state *dev, uint64_t bytes, ll_backing_wait *wait,
			       ll_cu_deviceptr *ret_address)
{
	ll_cu_deviceptr address;
	ll_cu_result status = ll_real()->cuMemAddressReserve(&address, bytes, 0, 0, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	for (uint64_t done = 0; done < bytes && status == LL_CUDA_SUCCESS; done += LL_BACKING_CHUNK_BYTES) {
		uint64_t left = bytes - done;
		uint64_t chunk_bytes = left < LL_BACKING_CHUNK_BYTES ? left : LL_BACKING_CHUNK_BYTES;
		status = await_chunk(dev, address + done, chunk_bytes, wait);
	}
	if (status == LL_CUDA_SUCCESS) {
		*ret_address = address;
	} else {
		drop_chunks(address, bytes);
		ll_real()->cuMemAddressFree(address, bytes);
	}
	return status;
}

static void drop_range(uint64_t address, uint64_t bytes)
{
	drop_chunks(address, bytes);
	ll_real()->cuMemAddressFree(address, bytes);
}

/* ---- shared blocks ---- */

static bool is_used(const struct block *block, unsigned step)
{
	return block->used[step / WORD_STEPS] >> (step % WORD_STEPS) & 1;
}

static void mark_steps(struct block *block, unsigned first, unsigned count, bool used)
{
	for (unsigned step = first; step < first + count; step++) {
		uint64_t bit = UINT64_C(1) << (step % WORD_STEPS);
		if (used)
			block->used[step / WORD_STEPS] |= bit;
		else
			block->used[step / WORD_STEPS] &= ~bit;
	}
	block->used_steps += used ? count : -count;
}

/* Returns the first gap of `count` steps; BLOCK_STEPS: there is none. */
static unsigned find_gap(const struct block *block, unsigned count)
{
	unsigned gap = 0;
	for (unsigned step = 0; step < BLOCK_STEPS; step++) {
		if (is_used(block, step))
			gap = 0;
		else if (++gap == count)
			return step + 1 - count;
	}
	return BLOCK_STEPS;
}

static ll_cu_result add_block(struct ll_device_state *dev, struct block **ret_block)
{
	struct block *block = calloc(1, sizeof *block);
	if (!block)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	block->dev = dev;
	ll_cu_result status = make_range(dev, LL_FOOTPRINT_BLOCK_BYTES, NULL, &block->address);
	if (status != LL_CUDA_SUCCESS) {
		free(block);
		return status;
	}
	block->next = blocks;
	blocks = block;
	*ret_block = block;
	return LL_CUDA_SUCCESS;
}

/* The lock is held. */
static ll_cu_result allocate_shared(struct ll_device_state *dev, unsigned steps, ll_cu_deviceptr *ret_address)
{
	unsigned first = BLOCK_STEPS;
	struct block *block = blocks;
	for (; block; block = block->next) {
		if (block->dev != dev || block->used_steps + steps > BLOCK_STEPS)
			continue;
		first = find_gap(block, steps);
		if (first < BLOCK_STEPS)
			break;
	}
	if (!block) {
		ll_cu_result status = add_block(dev, &block);
		if (status != LL_CUDA_SUCCESS)
			return status;
		first = 0;
	}
	mark_steps(block, first, steps, true);
	*ret_address = block->address + (uint64_t)first * STEP_BYTES;
	return LL_CUDA_SUCCESS;
}

static void drop_block(struct block **link)
{
	struct block *block = *link;
	*link = block->next;
	drop_range(block->address, LL_FOOTPRINT_BLOCK_BYTES);
	free(block);
}

static bool is_another_empty(const struct block *than)
{
	for (const struct block *block = blocks; block; block = block->next) {
		if (block != than && block->dev == than->dev && !block->used_steps)
			return true;
	}
	return false;
}

/* Frees steps of a shared block. A card keeps one empty block. Otherwise, if a program repeatedly allocates and frees a
 * small allocation, the driver would make a block each time. The lock is held. */
static void free_shared(uint64_t address, unsigned steps)
{
	struct block **link = &blocks, *block;
	while ((block = *link) && address - block->address >= LL_FOOTPRINT_BLOCK_BYTES)
		link = &block->next;
	if (!block)
		return;
	mark_steps(block, (unsigned)((address - block->address) / STEP_BYTES), steps, false);
	if (!block->used_steps && is_another_empty(block))
		drop_block(link);
}

static void drop_empty_blocks(void)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	for (struct block **link = &blocks; *link;) {
		if ((*link)->used_steps)
			link = &(*link)->next;
		else
			drop_block(link);
	}
}

/* ---- allocations ---- */

static unsigned steps_of(uint64_t bytes)
{
	return (unsigned)((bytes + STEP_BYTES - 1) / STEP_BYTES);
}

static ll_cu_result allocate_small(struct ll_device_state *dev, uint64_t bytes, ll_cu_deviceptr *ret_address)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	if (!has_fork_item) {
		has_fork_item = true;
		fork_item.in_child = forget_in_child;
		ll_fork_add(&fork_item);
	}
	return allocate_shared(dev, steps_of(bytes), ret_address);
}

bool ll_backing_has_chunks(uint64_t bytes)
{
	return bytes > SHARED_BYTES;
}

ll_cu_result ll_backing_allocate(struct ll_device_state *dev, uint64_t bytes, ll_backing_wait *wait,
				 ll_cu_deviceptr *ret_address, uint32_t *ret_serial)
{
	uint64_t whole_bytes = ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES);
	ll_cu_result status = ll_backing_has_chunks(bytes) ? make_range(dev, whole_bytes, wait, ret_address)
							   : allocate_small(dev, bytes, ret_address);
	if (status != LL_CUDA_SUCCESS)
		return status;
	*ret_serial = ll_backing_new_serial();
	atomic_fetch_add(&dev->evictable_bytes, ll_footprint_plain(bytes));
	return LL_CUDA_SUCCESS;
}

void ll_backing_free(const struct ll_extent *plain)
{
	atomic_fetch_sub(&plain->dev->evictable_bytes, ll_footprint_plain(plain->bytes));
	if (plain->is_exported)
		atomic_fetch_sub(&plain->dev->exported_count, 1);
	if (ll_backing_has_chunks(plain->bytes)) {
		drop_range(plain->address, ll_footprint_round(plain->bytes, LL_FOOTPRINT_BLOCK_BYTES));
		return;
	}
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	free_shared(plain->address, steps_of(plain->bytes));
}

void ll_backing_free_owned(uint64_t owner)
{
	struct ll_extent plain = {.kind = LL_EXTENT_PLAIN};
	while (ll_extents_next(&plain) && ll_extent_has_address(plain.kind)) {
		if (plain.kind == LL_EXTENT_PLAIN && plain.is_backed && plain.owner == owner)
			ll_backing_free(&plain);
	}
	drop_empty_blocks();
}
