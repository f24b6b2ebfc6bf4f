#include "shim/memory/pools.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/interpose/real.h"
#include "shim/memory/memory.h"

/* ---- freed blocks that other processes have imported ---- */

struct ll_lent {
	uint64_t id, bytes; /* id of the memory (exported.c); size in whole blocks of the card */
	struct ll_lent *next;
};

_Atomic bool ll_lent_is_any;

/* Call it when the program has freed an exported block. Adds the block to the list if another process holds it. */
static void lent_add(struct ll_lent **list, const struct ll_extent *block)
{
	struct ll_lent *lent = ll_exported_is_for_others(block->dev, block->shared) ? malloc(sizeof *lent) : NULL;
	if (!lent) {
		ll_exported_drop(block->shared);
		return;
	}
	*lent = (struct ll_lent){
	    .id = block->shared, .bytes = ll_footprint_round(block->bytes, LL_FOOTPRINT_BLOCK_BYTES), .next = *list};
	*list = lent;
	ll_lent_is_any = true;
}

static void remove_lent(struct ll_lent **link)
{
	struct ll_lent *lent = *link;
	*link = lent->next;
	ll_exported_drop(lent->id);
	free(lent);
}

/* Returns the bytes that other processes still hold. Removes blocks from the list that no process holds. */
static uint64_t lent_bytes(struct ll_lent **list, struct ll_device_state *dev)
{
	uint64_t bytes = 0;
	for (struct ll_lent **link = list; *link;) {
		if (!ll_exported_is_for_others(dev, (*link)->id)) {
			remove_lent(link);
			continue;
		}
		bytes += (*link)->bytes;
		link = &(*link)->next;
	}
	return bytes;
}

/* Empties the list when the pool ends. Blocks that other processes hold are charged separately (exported.c). */
static void lent_end(struct ll_lent **list)
{
	while (*list)
		remove_lent(list);
}

/* ---- which stream ---- */

struct ll_stream_place ll_stream_place_of(struct ll_cu_stream *stream)
{
	struct ll_stream_place place = {.handle = stream ? stream : LL_CU_STREAM_LEGACY};
	/* A number for the calling thread. pthread_self is no such number, because a new thread may get the value of an
	 * ended one. */
	static _Thread_local uint64_t own_number __attribute__((tls_model("initial-exec")));
	static _Atomic uint64_t last;
	if (stream == LL_CU_STREAM_PER_THREAD && !own_number)
		own_number = atomic_fetch_add(&last, 1) + 1;
	if (stream == LL_CU_STREAM_PER_THREAD)
		place.thread = own_number;
	if (ll_stream_is_default(stream) && ll_real()->cuCtxGetCurrent(&place.context) != LL_CUDA_SUCCESS)
		place.context = NULL;
	return place;
}

/* ---- pools ---- */

enum { CARDS = 64 };

/* ALONE: the longest wait until a thread may use a gap alone, while other calls are in the driver. DRAIN: the longest
 * wait until other calls return reserves that they did not need. */
#define ALONE_MOST_NS (2 * LL_NS_PER_S)
#define DRAIN_MOST_NS (20 * LL_NS_PER_MS)

static struct ll_pool_card cards[CARDS];

static _Atomic uint64_t pooled_cards; /* one bit for each card that has pools */

_Atomic bool ll_pools_are_used;

uint64_t ll_pool_cards(void)
{
	return pooled_cards;
}

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	for (size_t i = 0; i < CARDS; i++)
		cards[i] = (struct ll_pool_card){.pools = NULL};
	ll_pools_are_used = false;
	pooled_cards = 0;
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

struct ll_pool_card *ll_pool_card_lock(const struct ll_device_state *dev)
{
	ll_fork_add(&fork_item);
	ll_growth_lock(dev);
	return &cards[dev->device];
}

static void trim_driver(const struct ll_pool *pool)
{
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_real()->cuMemPoolTrimTo(pool->handle, 0);
	ll_stream_exchange_capture_mode(mode);
}

/* Corrects the pool's charge. If the driver does not report its size, the charge stays. The card's lock is held. */
static bool settle_pool(struct ll_pool *pool)
{
	uint64_t has_bytes, used = 0, lent;
	if (ll_pool_read(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &has_bytes))
		return true;
	/* Memory that the pool has returned but that other processes hold is still on the card. */
	lent = lent_bytes(&pool->lent, pool->dev);
	if (lent && ll_pool_read(pool, LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used))
		return true;
	uint64_t taken = lent && used + lent > has_bytes ? used + lent : has_bytes;
	if (has_bytes < pool->has_bytes)
		ll_pool_forget_gaps(pool);
	pool->has_bytes = has_bytes;
	return ll_growth_settle(pool->dev, &pool->growth, taken);
}

/* Corrects the pool's charge. If it exceeds the limit, trims the pool and returns false. The card's lock is held. */
static bool true_up(struct ll_pool *pool)
{
	if (pool->is_destroyed)
		return true;
	bool is_within = settle_pool(pool);
	if (is_within && !pool->is_over)
		return true;
	ll_pool_forget_gaps(pool);
	trim_driver(pool);
	settle_pool(pool);
	pool->is_over = !ll_growth_has_room(pool->dev, 0);
	return is_within;
}

static void true_up_card(const struct ll_pool_card *card)
{
	for (struct ll_pool *pool = card->pools; pool; pool = pool->next)
		true_up(pool);
}

void ll_pool_true_up_all(struct ll_device_state *dev)
{
	true_up_card(ll_pool_card_lock(dev));
	ll_growth_unlock(dev);
	for (uint64_t left = pooled_cards & ~(UINT64_C(1) << dev->device); left; left &= left - 1) {
		struct ll_device_state *other = ll_device_state_of(__builtin_ctzll(left));
		if (!other)
			continue;
		true_up_card(ll_pool_card_lock(other));
		ll_growth_unlock(other);
	}
	ll_graph_memory_true_up_all();
}

static uint64_t charged_on(const struct ll_pool_card *card)
{
	uint64_t bytes = 0;
	for (const struct ll_pool *pool = card->pools; pool; pool = pool->next)
		bytes += pool->growth.charged_bytes;
	return bytes;
}

/* Trims all pools of the card, unless a thread uses a gap alone. First waits for calls in the driver, because most have
 * reserved more than they need. Returns whether the charge has become less. The card's lock is held. */
static bool trim_card(const struct ll_device_state *dev, const struct ll_pool_card *card, uint64_t most_ns)
{
	unsigned calls;
	uint64_t before = charged_on(card);
	bool is_closed = ll_growth_close(dev, LL_GROWTH_POOLS, most_ns, &calls);
	true_up_card(card);
	for (struct ll_pool *pool = is_closed ? card->pools : NULL; pool; pool = pool->next) {
		if (pool->is_destroyed || !pool->has_bytes)
			continue;
		trim_driver(pool);
		if (calls) /* these calls may take as much memory as the trim returns */
			ll_pool_forget_gaps(pool);
	}
	true_up_card(card);
	if (is_closed)
		ll_growth_open(dev, LL_GROWTH_POOLS);
	return charged_on(card) < before;
}

static bool give_up_pools(struct ll_device_state *dev)
{
	if (!ll_pools_are_used)
		return false;
	bool is_less = ll_movable_pools_release(dev);
	const struct ll_pool_card *card = ll_pool_card_lock(dev);
	is_less |= trim_card(dev, card, DRAIN_MOST_NS);
	ll_growth_unlock(dev);
	return ll_graph_memory_release(dev) || is_less;
}

static void note_use(void)
{
	ll_pools_are_used = true;
	ll_device_state_set_reserve(give_up_pools);
}

void ll_pool_expect_graphs(uint64_t bytes)
{
	ll_graph_memory_expect(bytes);
	note_use();
}

/* Adds a pool. If another thread adds the same pool at the same time, both get the same object. dev NULL: the pool
 * takes no memory of a card. The pool owns `movable` from now on. */
static struct ll_pool *add_pool(struct ll_cu_mem_pool *handle, struct ll_device_state *dev,
				struct ll_movable_pool *movable)
{
	struct ll_extent found, extent = {.kind = LL_EXTENT_POOL, .address = ll_extent_handle(handle), .dev = dev};
	struct ll_pool *pool = calloc(1, sizeof *pool);
	if (!pool) {
		ll_movable_pool_end(movable);
		return NULL;
	}
	*pool = (struct ll_pool){.handle = handle, .dev = dev, .movable = movable};
	extent.pool = pool;
	struct ll_pool_card *card = dev ? ll_pool_card_lock(dev) : NULL;
	if (ll_extents_find(LL_EXTENT_POOL, extent.address, &found) && found.dev == dev) {
		ll_movable_pool_end(movable);
		free(pool);
		pool = found.pool;
	} else if (!ll_charge_put(&extent)) {
		ll_movable_pool_end(movable);
		free(pool);
		pool = NULL;
	} else if (card) {
		pool->next = card->pools;
		card->pools = pool;
		pooled_cards |= UINT64_C(1) << dev->device;
		note_use();
	}
	if (card)
		ll_growth_unlock(dev);
	return pool;
}

static bool is_evictable(void)
{
	const struct ll_run_settings *settings = ll_device_state_settings();
	return settings && settings->is_evictable;
}

/* Adds a pool of the card's own memory that cannot be exported. */
static struct ll_pool *add_movable(struct ll_cu_mem_pool *handle, struct ll_device_state *dev, uint64_t max_bytes)
{
	return add_pool(handle, dev, is_evictable() ? ll_movable_pool_new(dev, handle, max_bytes) : NULL);
}

/* Returns the card that is charged for a pool of managed memory without a location. */
static struct ll_device_state *dev_of_managed(void)
{
	struct ll_cu_context *context;
	struct ll_device_state *dev = ll_device_state_current(&context);
	return dev ? dev : ll_device_state_get(0);
}

void ll_pool_add(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_pool_props *props)
{
	struct ll_device_state *dev = NULL;
	if (props->location.type == LL_CU_MEM_LOCATION_TYPE_DEVICE)
		dev = ll_device_state_get(props->location.id);
	else if (props->type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED)
		dev = dev_of_managed();
	if (dev && props->type == LL_CU_MEM_ALLOCATION_TYPE_PINNED && !props->handle_types && !props->usage)
		add_movable(handle, dev, props->max_bytes);
	else
		add_pool(handle, dev, NULL);
}

/* Returns the pool; NULL: the program did not make it, or it is a default pool that was not used yet. */
static struct ll_pool *find_pool(struct ll_cu_mem_pool *handle)
{
	struct ll_extent extent;
	return ll_extents_find(LL_EXTENT_POOL, ll_extent_handle(handle), &extent) ? extent.pool : NULL;
}

/* Returns whether it is the default pool of managed memory of this card, or of no card (-1). */
static bool is_managed_default(struct ll_cu_mem_pool *handle, ll_cu_device device)
{
	struct ll_cu_mem_pool *pool;
	struct ll_cu_mem_location location = {.type = LL_CU_MEM_LOCATION_TYPE_INVALID};
	if (device >= 0)
		location = (struct ll_cu_mem_location){.type = LL_CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
	return ll_real()->cuMemGetDefaultMemPool(&pool, &location, LL_CU_MEM_ALLOCATION_TYPE_MANAGED) ==
		   LL_CUDA_SUCCESS &&
	       pool == handle;
}

/* Adds a pool that the driver made: a card's default pool, or a pool that takes no memory of a card. If the driver does
 * not report which it is, adds nothing. *failure: the driver's error. */
static struct ll_pool *add_default(struct ll_cu_mem_pool *handle, ll_cu_result *failure)
{
	for (ll_cu_device device = 0; device < CARDS; device++) {
		struct ll_device_state *dev = ll_device_state_of(device);
		struct ll_cu_mem_pool *pool;
		if (!dev)
			continue;
		ll_cu_result status = ll_real()->cuDeviceGetDefaultMemPool(&pool, device);
		if (status == LL_CUDA_SUCCESS && pool == handle)
			return add_movable(handle, dev, 0);
		if (ll_real_has_failed(status))
			*failure = status;
		if (is_managed_default(handle, device))
			return add_pool(handle, dev, NULL);
	}
	return *failure ? NULL : add_pool(handle, is_managed_default(handle, -1) ? dev_of_managed() : NULL, NULL);
}

/* Finds or adds the pool of the handle. *ret_pool NULL: there is no memory for it. Returns the driver's error if the
 * driver does not report which pool it is. */
static ll_cu_result find_or_add(struct ll_cu_mem_pool *handle, struct ll_pool **ret_pool)
{
	ll_cu_result failure = LL_CUDA_SUCCESS;
	*ret_pool = find_pool(handle);
	if (!*ret_pool)
		*ret_pool = add_default(handle, &failure);
	return *ret_pool ? LL_CUDA_SUCCESS : failure;
}

/* Finds the pool of an allocation. handle NULL: the pool that the card's streams use. */
static ll_cu_result find_used(const struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
			      struct ll_pool **ret_pool)
{
	ll_cu_result status = handle ? LL_CUDA_SUCCESS : ll_real()->cuDeviceGetMemPool(&handle, dev->device);
	*ret_pool = NULL;
	if (status != LL_CUDA_SUCCESS)
		return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
	return find_or_add(handle, ret_pool);
}

/* ---- allocations ---- */

/* The card's lock is held in this and the following functions. */
static bool reserve_growth(struct ll_pool *pool, uint64_t bytes, struct ll_pool_growth *growth)
{
	ll_growth_enter(pool->dev, LL_GROWTH_POOLS);
	int rc = ll_growth_reserve(pool->dev, &pool->growth, bytes);
	if (rc == -ENOMEM)
		ll_growth_leave(pool->dev, LL_GROWTH_POOLS);
	growth->bytes = rc == 0 ? bytes : 0;
	return rc != -ENOMEM;
}

/* If the pool has a known gap for this call, closes the card, so that no other call can take the gap. */
static bool reserve_gap(struct ll_pool *pool, uint64_t bytes, uint64_t most_bytes, const struct ll_stream_place *place,
			struct ll_pool_growth *growth)
{
	unsigned calls;
	if (!ll_gaps_fit(&pool->gaps, bytes, place) ||
	    !ll_growth_close(pool->dev, LL_GROWTH_POOLS, ALONE_MOST_NS, &calls))
		return false;
	growth->is_alone = !calls && settle_pool(pool) && ll_gaps_fit(&pool->gaps, bytes, place);
	if (!growth->is_alone) {
		ll_growth_open(pool->dev, LL_GROWTH_POOLS);
		return false;
	}
	growth->bytes = most_bytes;
	pool->growth.pending_bytes += most_bytes;
	return true;
}

/* Begins an allocation. has_patience: if the limit refuses it, the pools first give up the memory that they keep. */
static bool begin_growth(struct ll_pool *pool, uint64_t bytes, const struct ll_stream_place *place, bool has_patience,
			 struct ll_pool_growth *growth)
{
	uint64_t most_bytes = ll_footprint_round(bytes, LL_FOOTPRINT_POOL_STEP_BYTES);
	const struct ll_pool_card *card = ll_pool_card_lock(pool->dev);
	bool is_begun = (ll_growth_has_room(pool->dev, most_bytes) && reserve_growth(pool, most_bytes, growth)) ||
			reserve_gap(pool, bytes, most_bytes, place, growth);
	if (!is_begun && has_patience) {
		trim_card(pool->dev, card, DRAIN_MOST_NS);
		is_begun = reserve_growth(pool, most_bytes, growth);
	}
	growth->refusal = is_begun ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (is_begun) {
		growth->pool = pool;
		pool->serial++;
		growth->serial = pool->calls++ ? 0 : pool->serial;
	}
	ll_growth_unlock(pool->dev);
	return is_begun;
}

struct ll_pool_growth ll_pool_begin(struct ll_device_state *dev, struct ll_cu_mem_pool *handle, uint64_t bytes,
				    struct ll_cu_stream *stream)
{
	struct ll_pool_growth growth = {.pool = NULL};
	struct ll_pool *pool;
	growth.refusal = find_used(dev, handle, &pool);
	if (!pool || !pool->dev)
		return growth;
	struct ll_stream_place place = ll_stream_place_of(stream);
	if (begin_growth(pool, bytes, &place, false, &growth) ||
	    (ll_pool_ask_streams(pool, bytes) && begin_growth(pool, bytes, &place, false, &growth)) ||
	    begin_growth(pool, bytes, &place, true, &growth))
		return growth;
	bool is_less = ll_movable_pools_release(pool->dev);
	is_less |= ll_graph_memory_release(pool->dev);
	if (!is_less || !begin_growth(pool, bytes, &place, true, &growth)) {
		uint64_t most_bytes = ll_footprint_round(bytes, LL_FOOTPRINT_POOL_STEP_BYTES);
		if (ll_device_state_request_siblings(pool->dev, most_bytes))
			begin_growth(pool, bytes, &place, true, &growth);
	}
	return growth;
}

static bool end_growth(struct ll_pool_growth *growth, bool is_known, ll_cu_deviceptr address, uint64_t bytes)
{
	struct ll_pool *pool = growth->pool;
	if (!pool)
		return true;
	ll_pool_card_lock(pool->dev);
	uint64_t before = pool->has_bytes;
	pool->calls--;
	pool->growth.pending_bytes -= growth->bytes;
	bool is_within = true_up(pool);
	if (!is_known) {
		ll_pool_forget_gaps(pool);
	} else if (bytes) { /* before another call may begin */
		struct ll_extent block = {
		    .kind = LL_EXTENT_BLOCK, .address = address, .bytes = bytes, .dev = pool->dev, .pool = pool};
		pool->block_count += ll_charge_put(&block);
		ll_gaps_remove(&pool->gaps, address, bytes);
		if (pool->serial == growth->serial)
			ll_pool_note_growth(pool, address, bytes,
					    pool->has_bytes > before ? pool->has_bytes - before : 0);
	}
	if (growth->is_alone)
		ll_growth_open(pool->dev, LL_GROWTH_POOLS);
	else
		ll_growth_leave(pool->dev, LL_GROWTH_POOLS);
	ll_growth_unlock(pool->dev);
	growth->pool = NULL;
	return is_within;
}

bool ll_pool_end(struct ll_pool_growth *growth, ll_cu_deviceptr address, uint64_t bytes)
{
	return end_growth(growth, true, address, bytes);
}

void ll_pool_leave(struct ll_pool_growth *growth)
{
	end_growth(growth, false, 0, 0);
}

ll_cu_result ll_pool_trim(struct ll_cu_mem_pool *handle, uint64_t keep_bytes)
{
	unsigned calls;
	const struct ll_pool *pool = find_pool(handle);
	struct ll_device_state *dev = pool ? pool->dev : NULL;
	if (!dev)
		return ll_real()->cuMemPoolTrimTo(handle, keep_bytes);
	ll_pool_card_lock(dev);
	bool is_closed = ll_growth_close(dev, LL_GROWTH_POOLS, DRAIN_MOST_NS, &calls);
	ll_cu_result status = ll_real()->cuMemPoolTrimTo(handle, keep_bytes);
	if (is_closed)
		ll_growth_open(dev, LL_GROWTH_POOLS);
	ll_growth_unlock(dev);
	return status;
}

void ll_pool_shed(struct ll_pool *pool)
{
	ll_pool_card_lock(pool->dev);
	pool->is_over = true;
	true_up(pool);
	ll_growth_unlock(pool->dev);
}

/* Notes the gap before the driver's call, because from that call on another thread may get the block's addresses. */
bool ll_pool_take(ll_cu_deviceptr address, struct ll_extent *ret_block)
{
	if (!ll_pools_are_used || !ll_extents_remove(LL_EXTENT_BLOCK, address, ret_block))
		return false;
	if (ret_block->is_backed)
		return true;
	struct ll_pool *pool = ret_block->pool;
	ll_pool_card_lock(pool->dev);
	ret_block->serial = ++pool->frees ? pool->frees : ++pool->frees;
	ll_gaps_expect(&pool->gaps, address, ret_block->bytes, ret_block->serial);
	ll_growth_unlock(pool->dev);
	return true;
}

/* Frees a destroyed pool when its last block is gone. The card's lock is held. */
static void forget_pool(struct ll_pool_card *card, struct ll_pool *pool)
{
	struct ll_pool **link = &card->pools;
	while (*link && *link != pool)
		link = &(*link)->next;
	if (*link)
		*link = pool->next;
	ll_growth_settle(pool->dev, &pool->growth, 0);
	ll_gaps_fini(&pool->gaps);
	free(pool);
}

/* Ends a block after the driver's call. place NULL: when its memory may be used again is not known. */
static void end_block(const struct ll_extent *block, ll_cu_result status, const struct ll_stream_place *place)
{
	struct ll_pool *pool = block->pool;
	struct ll_device_state *dev = pool->dev;
	bool is_back = status != LL_CUDA_SUCCESS && ll_charge_put(block);
	struct ll_pool_card *card = ll_pool_card_lock(dev);
	if (!is_back && block->shared)
		lent_add(&pool->lent, block);
	ll_gaps_settle(&pool->gaps, block->serial, is_back ? NULL : place, ll_pools_new_free());
	pool->block_count -= !is_back;
	if (!is_back && pool->is_destroyed)
		lent_end(&pool->lent);
	if (!pool->is_destroyed) {
		true_up(pool);
	} else if (!pool->block_count) {
		forget_pool(card, pool);
	}
	ll_growth_unlock(dev);
}

void ll_pool_freed(const struct ll_extent *block, ll_cu_result status)
{
	end_block(block, status, NULL);
}

void ll_pool_freed_in(const struct ll_extent *block, ll_cu_result status, struct ll_cu_stream *stream)
{
	struct ll_stream_place place = ll_stream_place_of(stream);
	end_block(block, status, &place);
}

/* ---- memory that can be moved ---- */

struct ll_movable_pool *ll_pool_movable(const struct ll_device_state *dev, struct ll_cu_mem_pool *handle)
{
	struct ll_pool *pool;
	find_used(dev, handle, &pool);
	return pool ? pool->movable : NULL;
}

struct ll_movable_pool *ll_pool_movable_if_known(struct ll_cu_mem_pool *handle)
{
	struct ll_pool *pool = is_evictable() ? find_pool(handle) : NULL;
	return pool ? pool->movable : NULL;
}

struct ll_movable_pool *ll_pool_of_plain(struct ll_device_state *dev)
{
	struct ll_pool_card *card = ll_pool_card_lock(dev);
	if (!card->of_plain) {
		card->of_plain = ll_movable_pool_new(dev, NULL, 0);
		note_use();
	}
	struct ll_movable_pool *pool = card->of_plain;
	ll_growth_unlock(dev);
	return pool;
}

void ll_pool_trim_movable(struct ll_cu_mem_pool *handle, uint64_t keep_bytes)
{
	const struct ll_pool *pool = is_evictable() ? find_pool(handle) : NULL;
	if (!pool || !pool->movable)
		return;
	uint64_t has_bytes;
	ll_pool_read(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &has_bytes);
	ll_movable_pool_trim(pool->movable, keep_bytes > has_bytes ? keep_bytes - has_bytes : 0);
}

static ll_cu_result set_peer(struct ll_pool *pool, ll_cu_device user, bool is_allowed)
{
	uint64_t bit = UINT64_C(1) << user;
	uint64_t before = is_allowed ? atomic_fetch_or(&pool->peers, bit) : atomic_fetch_and(&pool->peers, ~bit);
	bool was_allowed = before & bit;
	return was_allowed != is_allowed ? ll_peers_of_pool(pool->dev, user, is_allowed) : LL_CUDA_SUCCESS;
}

ll_cu_result ll_pool_set_access(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_access_desc *accesses,
				size_t count)
{
	struct ll_pool *pool = NULL;
	ll_cu_result status = is_evictable() ? find_or_add(handle, &pool) : LL_CUDA_SUCCESS;
	for (size_t i = 0; pool && pool->movable && i < count && status == LL_CUDA_SUCCESS; i++) {
		struct ll_cu_mem_location user = accesses[i].location;
		if (user.type == LL_CU_MEM_LOCATION_TYPE_DEVICE && user.id != pool->dev->device && user.id >= 0 &&
		    user.id < CARDS)
			status = set_peer(pool, user.id, accesses[i].flags != LL_CU_MEM_ACCESS_FLAGS_PROT_NONE);
	}
	return status;
}

/* Cards that may use the pool's memory keep the right, because blocks of the pool may still be in use. */
void ll_pool_destroyed(struct ll_pool *pool)
{
	ll_movable_pool_end(pool->movable);
	if (!pool->dev) {
		free(pool);
		return;
	}
	struct ll_device_state *dev = pool->dev;
	struct ll_pool_card *card = ll_pool_card_lock(dev);
	pool->is_destroyed = true;
	lent_end(&pool->lent);
	ll_pool_forget_gaps(pool);
	if (!pool->block_count)
		forget_pool(card, pool);
	ll_growth_unlock(dev);
}
