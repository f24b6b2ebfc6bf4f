#include "shim/memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/memory/pools.h"

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

/* Forgets all memory, because the child has no memory of the parent on the card. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	blocks = NULL;
	for (int i = 0; i < CARDS; i++)
		atomic_store(&sums[i], 0);
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

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

/* Allows another card to use all chunks of this card, including later ones, or withdraws this right. Continues after an
 * error. Returns the first error. */
static ll_cu_result backing_set_peer(struct ll_device_state *dev, ll_cu_device peer, bool is_allowed)
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
	const struct ll_device_state *dev = ll_device_state_of(device);
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
		status = set_access(address, bytes, bit_of(device) | (dev ? atomic_load(&dev->peers) : 0), 0);
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

LL_EXTENT_SETTER(set_handle, handle)

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

static void drop_range(uint64_t address, uint64_t bytes)
{
	struct ll_extent chunk;
	for (uint64_t at = address; at < address + bytes; at += LL_BACKING_CHUNK_BYTES) {
		if (!ll_extents_remove(LL_EXTENT_BACKING, at, &chunk))
			continue;
		count_chunk(&chunk, false);
		ll_backing_unmake(at, chunk.bytes, chunk.handle);
	}
	ll_real()->cuMemAddressFree(address, bytes);
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
		uint64_t since_ns = wait ? ll_now_ns() : 0;
		do
			status = add_chunk(dev, address + done, chunk_bytes);
		while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && wait && wait(dev, since_ns));
	}
	if (status == LL_CUDA_SUCCESS)
		*ret_address = address;
	else
		drop_range(address, bytes);
	return status;
}

/* ---- shared blocks ---- */

static unsigned steps_of(uint64_t bytes)
{
	return (unsigned)((bytes + STEP_BYTES - 1) / STEP_BYTES);
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
		if (block->used[step / WORD_STEPS] >> (step % WORD_STEPS) & 1)
			gap = 0;
		else if (++gap == count)
			return step + 1 - count;
	}
	return BLOCK_STEPS;
}

/* Allocates from a shared block; makes one if none has room. */
static ll_cu_result allocate_shared(struct ll_device_state *dev, unsigned steps, ll_cu_deviceptr *ret_address)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	ll_fork_add(&fork_item);
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
		block = calloc(1, sizeof *block);
		if (!block)
			return LL_CUDA_ERROR_OUT_OF_MEMORY;
		ll_cu_result status = make_range(dev, LL_FOOTPRINT_BLOCK_BYTES, NULL, &block->address);
		if (status != LL_CUDA_SUCCESS) {
			free(block);
			return status;
		}
		block->dev = dev;
		block->next = blocks;
		blocks = block;
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

/* ---- allocations ---- */

bool ll_backing_has_chunks(uint64_t bytes)
{
	return bytes > SHARED_BYTES;
}

ll_cu_result ll_backing_allocate(struct ll_device_state *dev, uint64_t bytes, ll_backing_wait *wait,
				 ll_cu_deviceptr *ret_address, uint32_t *ret_serial)
{
	uint64_t whole_bytes = ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES);
	ll_cu_result status = ll_backing_has_chunks(bytes) ? make_range(dev, whole_bytes, wait, ret_address)
							   : allocate_shared(dev, steps_of(bytes), ret_address);
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
	struct block **link = &blocks, *block;
	while ((block = *link) && plain->address - block->address >= LL_FOOTPRINT_BLOCK_BYTES)
		link = &block->next;
	if (!block)
		return;
	mark_steps(block, (unsigned)((plain->address - block->address) / STEP_BYTES), steps_of(plain->bytes), false);
	if (block->used_steps)
		return;
	/* A card keeps one empty block. Otherwise, if a program repeatedly allocates and frees a small allocation, the
	 * driver would make a block each time. */
	bool has_another = false;
	for (const struct block *other = blocks; other; other = other->next)
		has_another |= other != block && other->dev == block->dev && !other->used_steps;
	if (has_another)
		drop_block(link);
}

void ll_backing_free_owned(uint64_t owner)
{
	struct ll_extent plain = {.kind = LL_EXTENT_PLAIN};
	while (ll_extents_next(&plain) && ll_extent_has_address(plain.kind)) {
		if (plain.kind == LL_EXTENT_PLAIN && plain.is_backed && plain.owner == owner)
			ll_backing_free(&plain);
	}
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	for (struct block **link = &blocks; *link;) {
		if ((*link)->used_steps)
			link = &(*link)->next;
		else
			drop_block(link);
	}
}

/* ---- cards that may use the memory of others ---- */

static pthread_mutex_t pairs_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t pairs[CARDS][CARDS]; /* number of pairs; indices: the card that has the memory, the card that uses it */

static bool is_card(ll_cu_device device)
{
	return device >= 0 && device < CARDS;
}

/* Finds the cards of context `peer` and of the current context. *ret_of is NULL if no allocation is backed, or if both
 * contexts are on one card. Returns the driver's error if the driver does not report a card. */
static ll_cu_result find_pair(struct ll_cu_context *peer, struct ll_device_state **ret_of, ll_cu_device *ret_user)
{
	struct ll_cu_context *popped;
	ll_cu_device of;
	const struct ll_run_settings *settings = ll_device_state_settings();
	*ret_of = NULL;
	if (!settings || !settings->is_evictable)
		return LL_CUDA_SUCCESS;
	ll_cu_result status = ll_real()->cuCtxGetDevice(ret_user);
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuCtxPushCurrent_v2(peer);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuCtxGetDevice(&of);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	if (status == LL_CUDA_SUCCESS && of != *ret_user && is_card(of) && is_card(*ret_user))
		*ret_of = ll_device_state_of(of);
	return status;
}

static ll_cu_result add_pair(struct ll_device_state *of, ll_cu_device user)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&pairs_lock);
	ll_cu_result status = pairs[of->device][user] ? LL_CUDA_SUCCESS : backing_set_peer(of, user, true);
	if (status == LL_CUDA_SUCCESS)
		pairs[of->device][user]++;
	else
		backing_set_peer(of, user, false);
	return status;
}

static void remove_pair(struct ll_device_state *of, ll_cu_device user)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&pairs_lock);
	if (pairs[of->device][user] && --pairs[of->device][user] == 0)
		backing_set_peer(of, user, false);
}

ll_cu_result ll_peers_enabled(struct ll_cu_context *peer)
{
	struct ll_device_state *of;
	ll_cu_device user;
	ll_cu_result status = find_pair(peer, &of, &user);
	if (status == LL_CUDA_SUCCESS && of)
		status = add_pair(of, user);
	if (status != LL_CUDA_SUCCESS)
		ll_real()->cuCtxDisablePeerAccess(peer);
	return status;
}

void ll_peers_disabled(struct ll_cu_context *peer)
{
	struct ll_device_state *of;
	ll_cu_device user;
	if (find_pair(peer, &of, &user) == LL_CUDA_SUCCESS && of)
		remove_pair(of, user);
}

ll_cu_result ll_peers_of_pool(struct ll_device_state *of, ll_cu_device user, bool is_allowed)
{
	if (is_allowed)
		return add_pair(of, user);
	remove_pair(of, user);
	return LL_CUDA_SUCCESS;
}

/* ---- answers of the driver's query functions ---- */

enum ll_backed ll_backed_find(ll_cu_deviceptr address, struct ll_extent *ret_plain)
{
	struct ll_extent backing;
	if (!ll_device_state_is_governed() || !ll_device_state_settings()->is_evictable)
		return LL_BACKED_NOT;
	if (ll_extents_find_containing(address, ret_plain)) {
		if (ret_plain->kind == LL_EXTENT_MAPPING)
			return LL_BACKED_MAPPING;
		return ret_plain->is_backed ? LL_BACKED_ALLOCATION : LL_BACKED_NOT;
	}
	return ll_extents_find_backing(address, &backing) ? LL_BACKED_GAP : LL_BACKED_NOT;
}

ll_cu_deviceptr ll_backed_hide(ll_cu_deviceptr address)
{
	struct ll_extent plain;
	enum ll_backed what = ll_backed_find(address, &plain);
	return what == LL_BACKED_ALLOCATION || what == LL_BACKED_GAP ? LL_BACKED_NOWHERE : address;
}

void *ll_backed_hide_pointer(void *address)
{
	ll_cu_deviceptr at = (ll_cu_deviceptr)(uintptr_t)address, hidden = ll_backed_hide(at);
	return hidden == at ? address : (void *)(uintptr_t)hidden; /* NOLINT(performance-no-int-to-ptr) */
}

ll_cu_deviceptr ll_backed_hide_gap(ll_cu_deviceptr address)
{
	struct ll_extent plain;
	return ll_backed_find(address, &plain) == LL_BACKED_GAP ? LL_BACKED_NOWHERE : address;
}

/* Returns the blocks of 2 MiB that contain the allocation. Small allocations share one block. */
static struct blocks {
	uint64_t address, bytes;
} blocks_of(const struct ll_extent *plain)
{
	struct ll_extent backing;
	uint64_t bytes = plain->kind == LL_EXTENT_BLOCK ? plain->room_bytes : plain->bytes;
	if (!ll_backing_has_chunks(bytes) && ll_extents_find_backing(plain->address, &backing))
		return (struct blocks){backing.address, backing.bytes};
	return (struct blocks){plain->address, ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES)};
}

/* On a card without a decompression engine, the driver reports memory of cuMemAlloc as capable and mapped memory as not
 * capable (measured: H100, driver 580). So the library reports its memory as capable there. On a card with the engine
 * the driver's answer is right, because the engine cannot decompress into this memory. */
static bool tell_decompress(const struct ll_extent *plain, void *ret_value)
{
	int algorithms;
	if (ll_real()->cuDeviceGetAttribute(&algorithms, LL_CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
					    plain->dev->device) != LL_CUDA_SUCCESS ||
	    algorithms)
		return false;
	*(unsigned *)ret_value = 1;
	return true;
}

bool ll_backed_attribute(const struct ll_extent *plain, enum ll_cu_pointer_attribute attribute, void *ret_value)
{
	if (plain->kind == LL_EXTENT_MAPPING) {
		struct ll_cu_mem_allocation_prop prop = {.handle_types = LL_CU_MEM_HANDLE_TYPE_MAX};
		if (attribute == LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
			ll_physical_describe(plain->handle, &prop);
		if (prop.handle_types == LL_CU_MEM_HANDLE_TYPE_MAX)
			return false; /* without a stand-in it has the properties that the program asked for */
		*(uint64_t *)ret_value = prop.handle_types;
		return true;
	}
	struct ll_extent backing = {0};
	switch (attribute) {
	case LL_CU_POINTER_ATTRIBUTE_CONTEXT:
		*(struct ll_cu_context **)ret_value = ll_context_of_owner(plain->owner);
		return true;
	case LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)ret_value = plain->is_synced;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(uint64_t *)ret_value = LL_BACKED_FIRST_ID + plain->serial;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		ll_extents_find_backing(plain->address, &backing);
		*(uint64_t *)ret_value = LL_BACKED_FIRST_ID + backing.serial; /* of several chunks: of the first */
		return true;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(ll_cu_deviceptr *)ret_value = plain->address;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(ll_cu_deviceptr *)ret_value = blocks_of(plain).address;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)ret_value = plain->bytes;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)ret_value = blocks_of(plain).bytes;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return plain->kind == LL_EXTENT_PLAIN && tell_decompress(plain, ret_value);
	case LL_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: /* memory of pools is not capable */
		if (plain->kind == LL_EXTENT_BLOCK)
			*(unsigned *)ret_value = 0;
		return plain->kind == LL_EXTENT_BLOCK;
	case LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)ret_value = LL_CU_MEM_HANDLE_TYPE_NONE;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)ret_value = plain->kind == LL_EXTENT_PLAIN;
		return true;
	case LL_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(struct ll_cu_mem_pool **)ret_value =
		    plain->kind == LL_EXTENT_BLOCK ? ll_movable_pool_handle(plain->movable) : NULL;
		return true;
	default:
		return false;
	}
}

LL_EXTENT_SETTER(set_is_synced, is_synced)

ll_cu_result ll_backed_set_synced(const struct ll_extent *plain, bool is_synced)
{
	unsigned int flags;
	ll_cu_result status = is_synced ? ll_real()->cuCtxGetFlags(&flags) : LL_CUDA_SUCCESS;
	if (is_synced && status == LL_CUDA_SUCCESS && !(flags & LL_CU_CTX_SYNC_MEMOPS))
		status = ll_real()->cuCtxSetFlags(flags | LL_CU_CTX_SYNC_MEMOPS);
	if (status == LL_CUDA_SUCCESS)
		ll_extents_change(plain->kind, plain->address, set_is_synced, is_synced, NULL);
	return status;
}

LL_EXTENT_SETTER(set_is_exported, is_exported)

void ll_backed_note_exported(const struct ll_extent *plain)
{
	struct ll_extent before;
	if (ll_extents_change(plain->kind, plain->address, set_is_exported, true, &before) && !before.is_exported)
		atomic_fetch_add(&before.dev->exported_count, 1);
}
