#include "shim/memory/pools.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/fork.h"
#include "ledger/port.h"
#include "shim/interpose/real.h"
#include "shim/memory/charge.h"
#include "shim/memory/footprint.h"
#include "shim/memory/lent.h"
#include "shim/memory/movable_pool.h"
#include "shim/memory/peers.h"

enum { CARDS = 64 };

struct ll_pool {
	struct ll_cu_mem_pool *handle;
	struct ll_device_state *dev; /* NULL: the pool takes nothing of a card */
	uint64_t charged_bytes;      /* pending_bytes included */
	uint64_t pending_bytes;      /* reserved for allocations that the driver is making */
	uint64_t block_count;
	bool is_destroyed;
	struct ll_movable_pool *movable; /* NULL: its memory stays on the card */
	struct ll_lent *lent;            /* freed blocks that other processes have imported */
	_Atomic uint64_t peers;          /* cards that may use its memory too: a bit for each ordinal */
	struct ll_pool *next;
};

static struct card {
	pthread_mutex_t lock; /* guards its pools */
	struct ll_pool *pools;
	struct ll_movable_pool
	    *of_plain;        /* plain allocations that were freed in the order of a stream; NULL: none yet */
	uint64_t graph_bytes; /* charged for graphs */
	int cancel_state;     /* the locking thread's cancel state before it locked */
} cards[CARDS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_fork_item fork_item;
static _Atomic bool has_graphs;
static _Atomic uint64_t graph_node_bytes; /* the most that all allocating nodes may take */
static _Atomic uint64_t
    graph_losses; /* how often the graphs' memory got less; after that it is not known which graph has its memory */
static _Atomic uint64_t pooled_cards; /* one bit for each card that has pools */

_Atomic bool ll_pools_are_used;

static void init_cards(void)
{
	for (size_t i = 0; i < CARDS; i++) {
		pthread_mutex_init(&cards[i].lock, NULL);
		cards[i].pools = NULL;
		cards[i].of_plain = NULL;
		cards[i].graph_bytes = 0;
	}
}

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	init_cards();
	ll_pools_are_used = false;
	has_graphs = false;
	graph_node_bytes = 0;
	pooled_cards = 0;
}

static void init_once(void)
{
	init_cards();
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

/* Locks the card's pools. The thread cannot be cancelled meanwhile: it calls the driver under the lock, and these calls
 * may be cancellation points. */
static struct card *lock_card(const struct ll_device_state *dev)
{
	int cancel_state;
	pthread_once(&once, init_once);
	struct card *card = &cards[dev->device];
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&card->lock);
	card->cancel_state = cancel_state;
	return card;
}

static void unlock_card(struct card *card)
{
	int cancel_state = card->cancel_state;
	pthread_mutex_unlock(&card->lock);
	pthread_setcancelstate(cancel_state, NULL);
}

static ll_cu_result read_attribute(const struct ll_pool *pool, enum ll_cu_mem_pool_attribute attribute,
				   uint64_t *ret_value)
{
	*ret_value = 0;
	ll_cu_result status = ll_real()->cuMemPoolGetAttribute(pool->handle, attribute, ret_value);
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

/* Makes the charge `bytes`. False: that is more than the limit has room for; it is charged all the same. */
static bool charge_as(struct ll_device_state *dev, uint64_t *charged_bytes, uint64_t bytes)
{
	uint64_t before = *charged_bytes;
	bool is_within = true;
	*charged_bytes = bytes;
	if (bytes < before) {
		ll_device_state_release(dev, before - bytes);
	} else if (bytes > before && ll_charge_reserve(dev, bytes - before) != 0) {
		is_within = false;
		ll_device_state_charge(dev, bytes - before);
	}
	return is_within;
}

/* Tells what the pool takes of the card. If the pool has given memory back that others hold, that is on the card still.
 * The card's lock is held. */
static ll_cu_result read_taken(struct ll_pool *pool, uint64_t *ret_bytes)
{
	uint64_t used = 0, lent = ll_lent_bytes(&pool->lent, pool->dev);
	ll_cu_result status = read_attribute(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, ret_bytes);
	if (status == LL_CUDA_SUCCESS && lent)
		status = read_attribute(pool, LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
	if (lent && used + lent > *ret_bytes)
		*ret_bytes = used + lent;
	return status;
}

/* If the driver does not say what the pool has, the charge stays. The card's lock is held. */
static bool true_up(struct ll_pool *pool)
{
	uint64_t bytes;
	if (pool->is_destroyed || read_taken(pool, &bytes))
		return true;
	return charge_as(pool->dev, &pool->charged_bytes, bytes + pool->pending_bytes);
}

/* If the driver does not say what the graphs have, they are charged the most that they may have. */
static bool true_up_graphs(struct ll_device_state *dev, struct card *card)
{
	uint64_t bytes = 0;
	if (!has_graphs)
		return true;
	ll_cu_result status =
	    ll_real()->cuDeviceGetGraphMemAttribute(dev->device, LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
	if (ll_real_has_failed(status))
		bytes = card->graph_bytes > graph_node_bytes ? card->graph_bytes : graph_node_bytes;
	else if (status != LL_CUDA_SUCCESS)
		return true;
	if (bytes < card->graph_bytes)
		graph_losses++;
	return charge_as(dev, &card->graph_bytes, bytes);
}

static void true_up_card(struct ll_device_state *dev, struct card *card)
{
	for (struct ll_pool *pool = card->pools; pool; pool = pool->next)
		true_up(pool);
	true_up_graphs(dev, card);
}

/* Corrects all charges of the card, those of graphs too. */
static void true_up_of(struct ll_device_state *dev)
{
	struct card *card = lock_card(dev);
	true_up_card(dev, card);
	unlock_card(card);
}

void ll_pool_true_up_all(struct ll_device_state *dev)
{
	true_up_of(dev);
	for (uint64_t left = pooled_cards & ~(UINT64_C(1) << dev->device); left; left &= left - 1) {
		struct ll_device_state *other = ll_device_state_of(__builtin_ctzll(left));
		if (other)
			true_up_of(other);
	}
}

static uint64_t charged_on(const struct card *card)
{
	uint64_t bytes = card->graph_bytes;
	for (const struct ll_pool *pool = card->pools; pool; pool = pool->next)
		bytes += pool->charged_bytes;
	return bytes;
}

/* Trims all pools of the card. A thread that captures a stream may do so in the relaxed mode. The card's lock is held.
 * */
static bool trim_card(struct ll_device_state *dev, struct card *card)
{
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	true_up_card(dev, card);
	uint64_t before = charged_on(card);
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (struct ll_pool *pool = card->pools; pool; pool = pool->next) {
		if (!pool->is_destroyed)
			ll_real()->cuMemPoolTrimTo(pool->handle, 0);
	}
	if (has_graphs)
		ll_real()->cuDeviceGraphMemTrim(dev->device);
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	true_up_card(dev, card);
	return charged_on(card) < before;
}

static bool give_up_pools(struct ll_device_state *dev)
{
	if (!ll_pools_are_used)
		return false;
	bool is_less = ll_movable_pools_release(dev);
	struct card *card = lock_card(dev);
	uint64_t before = charged_on(card);
	is_less |= trim_card(dev, card) || charged_on(card) < before;
	unlock_card(card);
	return is_less;
}

static void note_use(void)
{
	ll_pools_are_used = true;
	ll_device_state_set_reserve(give_up_pools);
}

void ll_pool_expect_graphs(uint64_t bytes)
{
	atomic_fetch_add(&graph_node_bytes, ll_footprint_round(bytes, LL_FOOTPRINT_POOL_STEP_BYTES));
	has_graphs = true;
	note_use();
}

static bool has_room(const struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_memory_view view;
	ll_port_read_memory(dev->claim, &view);
	return !view.limit_bytes ||
	       (view.used_bytes <= view.limit_bytes && bytes <= view.limit_bytes - view.used_bytes);
}

/* The need of a single graph is not known, only the sum of all nodes that were ever added. A graph that has its memory
 * needs no room. */
bool ll_pool_has_room_for_graph(struct ll_device_state *dev, const struct ll_cu_graph_exec *exec)
{
	struct ll_extent known;
	if (!has_graphs ||
	    (ll_extents_find(LL_EXTENT_GRAPH, ll_extent_handle(exec), &known) && known.count == graph_losses))
		return true;
	struct card *card = lock_card(dev);
	uint64_t nodes = graph_node_bytes;
	bool is_roomy = has_room(dev, nodes > card->graph_bytes ? nodes - card->graph_bytes : 0);
	unlock_card(card);
	return is_roomy;
}

bool ll_pool_keep_graph(struct ll_device_state *dev, const struct ll_cu_graph_exec *exec)
{
	struct ll_extent graph = {.kind = LL_EXTENT_GRAPH, .address = ll_extent_handle(exec), .count = graph_losses};
	struct card *card = lock_card(dev);
	bool is_kept = true_up_graphs(dev, card) || has_room(dev, 0);
	unlock_card(card);
	if (is_kept || (ll_device_state_ask_siblings(dev) && has_room(dev, 0))) {
		if (has_graphs) /* without graphs that allocate, nobody would take the extent out */
			ll_charge_put(&graph);
		return true;
	}
	give_up_pools(dev);
	return false;
}

void ll_pool_forget_graph(const struct ll_cu_graph_exec *exec)
{
	if (has_graphs)
		ll_extents_take(LL_EXTENT_GRAPH, ll_extent_handle(exec), NULL);
}

/* Adds a pool. If another thread adds the same pool at the same time, both get the same one. dev NULL: the pool takes
 * nothing of a card. movable is the pool's from now on. */
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
	struct card *card = dev ? lock_card(dev) : NULL;
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
		unlock_card(card);
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
	return dev ? dev : ll_device_state_take(0);
}

void ll_pool_add(struct ll_cu_mem_pool *handle, const struct ll_cu_mem_pool_props *props)
{
	struct ll_device_state *dev = NULL;
	if (props->location.type == LL_CU_MEM_LOCATION_TYPE_DEVICE)
		dev = ll_device_state_take(props->location.id);
	else if (props->type == LL_CU_MEM_ALLOCATION_TYPE_MANAGED)
		dev = dev_of_managed();
	if (dev && props->type == LL_CU_MEM_ALLOCATION_TYPE_PINNED && !props->handle_types && !props->usage)
		add_movable(handle, dev, props->max_bytes);
	else
		add_pool(handle, dev, NULL);
}

/* Returns the pool; NULL: the program did not make it, or it is a default one that was not used yet. */
static struct ll_pool *find_pool(struct ll_cu_mem_pool *handle)
{
	struct ll_extent extent;
	return ll_extents_find(LL_EXTENT_POOL, ll_extent_handle(handle), &extent) ? extent.pool : NULL;
}

/* *failure: the driver's error, if it does not say. */
static bool is_default_of(struct ll_cu_mem_pool *handle, ll_cu_device device, ll_cu_result *failure)
{
	struct ll_cu_mem_pool *pool;
	ll_cu_result status = ll_real()->cuDeviceGetDefaultMemPool(&pool, device);
	if (ll_real_has_failed(status))
		*failure = status;
	return status == LL_CUDA_SUCCESS && pool == handle;
}

static bool is_managed_default_of(struct ll_cu_mem_pool *handle, ll_cu_device device)
{
	struct ll_cu_mem_location location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
	struct ll_cu_mem_pool *pool;
	return ll_real()->cuMemGetDefaultMemPool(&pool, &location, LL_CU_MEM_ALLOCATION_TYPE_MANAGED) ==
		   LL_CUDA_SUCCESS &&
	       pool == handle;
}

/* Whether it is the default pool of managed memory without a location. */
static bool is_default_of_none(struct ll_cu_mem_pool *handle)
{
	struct ll_cu_mem_location nowhere = {.type = LL_CU_MEM_LOCATION_TYPE_INVALID};
	struct ll_cu_mem_pool *pool;
	return ll_real()->cuMemGetDefaultMemPool(&pool, &nowhere, LL_CU_MEM_ALLOCATION_TYPE_MANAGED) ==
		   LL_CUDA_SUCCESS &&
	       pool == handle;
}

/* Adds a pool that the driver made: a card's default pool, or a pool that takes nothing of a card. If the driver does
 * not say which it is, nothing is remembered. */
static struct ll_pool *add_default(struct ll_cu_mem_pool *handle, ll_cu_result *failure)
{
	for (ll_cu_device device = 0; device < CARDS; device++) {
		struct ll_device_state *dev = ll_device_state_of(device);
		if (dev && is_default_of(handle, device, failure))
			return add_movable(handle, dev, 0);
		if (dev && is_managed_default_of(handle, device))
			return add_pool(handle, dev, NULL);
	}
	return *failure ? NULL : add_pool(handle, is_default_of_none(handle) ? dev_of_managed() : NULL, NULL);
}

/* *ret_pool NULL: there is no memory for it. Returns the driver's error if it does not say which pool it is. */
static ll_cu_result find_or_add(struct ll_cu_mem_pool *handle, struct ll_pool **ret_pool)
{
	ll_cu_result failure = LL_CUDA_SUCCESS;
	*ret_pool = find_pool(handle);
	if (!*ret_pool)
		*ret_pool = add_default(handle, &failure);
	return *ret_pool ? LL_CUDA_SUCCESS : failure;
}

/* handle NULL: the pool that the card's streams use. */
static ll_cu_result find_used(const struct ll_device_state *dev, struct ll_cu_mem_pool *handle,
			      struct ll_pool **ret_pool)
{
	ll_cu_result status = handle ? LL_CUDA_SUCCESS : ll_real()->cuDeviceGetMemPool(&handle, dev->device);
	*ret_pool = NULL;
	if (status != LL_CUDA_SUCCESS)
		return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
	return find_or_add(handle, ret_pool);
}

/* Reserves what the pool may grow by. Returns the limit's refusal, or the driver's error if it does not say what the
 * pool has. The card's lock is held. */
static ll_cu_result reserve_growth(struct ll_pool *pool, struct card *card, uint64_t bytes, uint64_t *ret_growth)
{
	uint64_t reserved, used, taken;
	ll_cu_result status = read_attribute(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
	if (status == LL_CUDA_SUCCESS)
		status = read_attribute(pool, LL_CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
	if (status == LL_CUDA_SUCCESS)
		status = read_taken(pool, &taken);
	if (status != LL_CUDA_SUCCESS)
		return status;
	bool has_room = reserved >= used && reserved - used >= bytes;
	uint64_t growth = has_room ? 0 : ll_footprint_round(bytes, LL_FOOTPRINT_POOL_STEP_BYTES);
	charge_as(pool->dev, &pool->charged_bytes, taken + pool->pending_bytes);
	int rc = ll_charge_reserve(pool->dev, growth);
	if (rc == -ENOMEM && trim_card(pool->dev, card))
		rc = ll_charge_reserve(pool->dev, growth);
	*ret_growth = rc == 0 ? growth : 0;
	return rc == -ENOMEM ? LL_CUDA_ERROR_OUT_OF_MEMORY : LL_CUDA_SUCCESS;
}

static void begin_growth(struct ll_pool *pool, uint64_t bytes, struct ll_pool_growth *growth)
{
	struct card *card = lock_card(pool->dev);
	growth->refusal = reserve_growth(pool, card, bytes, &growth->bytes);
	if (!growth->refusal) {
		growth->pool = pool;
		pool->pending_bytes += growth->bytes;
		pool->charged_bytes += growth->bytes;
	}
	unlock_card(card);
}

struct ll_pool_growth ll_pool_begin(struct ll_device_state *dev, struct ll_cu_mem_pool *handle, uint64_t bytes)
{
	struct ll_pool_growth growth = {.pool = NULL};
	struct ll_pool *pool;
	growth.refusal = find_used(dev, handle, &pool);
	if (!pool || !pool->dev)
		return growth;
	begin_growth(pool, bytes, &growth);
	if (growth.refusal == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_movable_pools_release(pool->dev))
		begin_growth(pool, bytes, &growth);
	if (growth.refusal == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_device_state_ask_siblings(pool->dev))
		begin_growth(pool, bytes, &growth);
	return growth;
}

bool ll_pool_end(struct ll_pool_growth *growth)
{
	struct ll_pool *pool = growth->pool;
	if (!pool)
		return true;
	struct card *card = lock_card(pool->dev);
	pool->pending_bytes -= growth->bytes;
	bool is_within = true_up(pool);
	unlock_card(card);
	growth->pool = NULL;
	return is_within;
}

void ll_pool_keep(struct ll_pool *pool, ll_cu_deviceptr address, uint64_t bytes)
{
	struct ll_extent block = {
	    .kind = LL_EXTENT_BLOCK, .address = address, .bytes = bytes, .dev = pool->dev, .pool = pool};
	struct card *card = lock_card(pool->dev);
	pool->block_count += ll_charge_put(&block);
	unlock_card(card);
}

bool ll_pool_take(ll_cu_deviceptr address, struct ll_extent *ret_block)
{
	return ll_pools_are_used && ll_extents_take(LL_EXTENT_BLOCK, address, ret_block);
}

/* The last block of a pool that was destroyed is gone. The card's lock is held. */
static void forget_pool(struct card *card, struct ll_pool *pool)
{
	struct ll_pool **link = &card->pools;
	while (*link && *link != pool)
		link = &(*link)->next;
	if (*link)
		*link = pool->next;
	charge_as(pool->dev, &pool->charged_bytes, 0);
	free(pool);
}

void ll_pool_freed(const struct ll_extent *block, ll_cu_result status)
{
	struct ll_pool *pool = block->pool;
	if (status != LL_CUDA_SUCCESS && ll_charge_put(block))
		return;
	struct card *card = lock_card(pool->dev);
	if (block->shared)
		ll_lent_add(&pool->lent, block);
	pool->block_count--;
	if (pool->is_destroyed)
		ll_lent_end(&pool->lent, pool->dev);
	if (!pool->is_destroyed)
		true_up(pool);
	else if (!pool->block_count)
		forget_pool(card, pool);
	unlock_card(card);
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
	struct card *card = lock_card(dev);
	if (!card->of_plain) {
		card->of_plain = ll_movable_pool_new(dev, NULL, 0);
		note_use();
	}
	struct ll_movable_pool *pool = card->of_plain;
	unlock_card(card);
	return pool;
}

void ll_pool_trim_movable(struct ll_cu_mem_pool *handle, uint64_t keep_bytes)
{
	const struct ll_pool *pool = is_evictable() ? find_pool(handle) : NULL;
	if (!pool || !pool->movable)
		return;
	uint64_t has_bytes;
	read_attribute(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &has_bytes);
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

/* The cards that may use the pool's memory keep the right: blocks of it may be in use still. */
void ll_pool_destroyed(struct ll_pool *pool)
{
	ll_movable_pool_end(pool->movable);
	if (!pool->dev) {
		free(pool);
		return;
	}
	struct card *card = lock_card(pool->dev);
	pool->is_destroyed = true;
	ll_lent_end(&pool->lent, pool->dev);
	if (!pool->block_count)
		forget_pool(card, pool);
	unlock_card(card);
}
