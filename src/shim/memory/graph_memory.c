#include "shim/memory/pools.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/interpose/real.h"
#include "shim/memory/memory.h"

enum { CARDS = 64, DEEPEST = 32 };

/* The longest wait for calls in the driver before graph memory is given up. */
#define DRAIN_MOST_NS (20 * LL_NS_PER_MS)

#define NEVER UINT64_MAX

struct ll_graph_memory {
	struct ll_stream_place place; /* stream of the last launch or upload; all zero: none */
	uint64_t epoch; /* value of the static epoch at that time; NEVER: its memory may be lost already */
	bool frees_all; /* the graph frees all memory that it allocates */
	size_t count;
	struct need {
		struct ll_device_state *dev;
		uint64_t bytes;
	} needs[];
};

/* The lock of pool_growth.c guards it. */
static struct card {
	struct ll_growth growth;
	uint64_t has_bytes;     /* the size that the driver last reported */
	unsigned certain_calls; /* number of calls in the driver that need the memory that graphs have */
} cards[CARDS];

static _Atomic uint64_t used_cards; /* one bit for each card on which graphs may have memory */
static _Atomic uint64_t node_bytes; /* upper bound of the memory that all allocating nodes may take */
static _Atomic uint64_t epoch;      /* changes when a graph may have lost its memory */

_Atomic bool ll_graph_memory_is_used;

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	for (size_t i = 0; i < CARDS; i++)
		cards[i] = (struct card){.certain_calls = 0};
	used_cards = 0;
	node_bytes = 0;
	ll_graph_memory_is_used = false;
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

void ll_graph_memory_expect(uint64_t bytes)
{
	ll_fork_add(&fork_item);
	atomic_fetch_add(&node_bytes, ll_footprint_round(bytes, LL_FOOTPRINT_POOL_STEP_BYTES));
	ll_graph_memory_is_used = true;
}

/* ---- what a graph needs ---- */

struct walk {
	struct ll_graph_block *blocks;
	size_t count, capacity;
	uint64_t *freed; /* addresses */
	size_t freed_count, freed_capacity;
	bool is_unknown; /* the content of a node cannot be read, or there is no memory */
};

static void *append_item(void *array, size_t *count, size_t *capacity, size_t item_bytes)
{
	if (*count == *capacity) {
		size_t more = *capacity ? *capacity * 2 : 8;
		void *grown = realloc(array, more * item_bytes);
		if (!grown)
			return NULL;
		array = grown;
		*capacity = more;
	}
	++*count;
	return array;
}

static void add_block(struct walk *walk, struct ll_cu_graph_node *node)
{
	struct ll_cu_mem_alloc_params params = {.bytes = 0};
	struct ll_graph_block *grown = append_item(walk->blocks, &walk->count, &walk->capacity, sizeof *grown);
	if (!grown || ll_real()->cuGraphMemAllocNodeGetParams(node, &params) != LL_CUDA_SUCCESS) {
		walk->is_unknown = true;
		walk->count -= grown != NULL;
		walk->blocks = grown ? grown : walk->blocks;
		return;
	}
	walk->blocks = grown;
	walk->blocks[walk->count - 1] = (struct ll_graph_block){
	    .device = params.pool.location.id, .address = params.address, .bytes = params.bytes};
}

static void walk_graph(struct walk *walk, struct ll_cu_graph *graph, unsigned depth);

static void walk_node(struct walk *walk, struct ll_cu_graph_node *node, unsigned depth)
{
	enum ll_cu_graph_node_type type = LL_CU_GRAPH_NODE_TYPE_EMPTY;
	struct ll_cu_graph *inside;
	ll_cu_deviceptr address;
	if (ll_real()->cuGraphNodeGetType(node, &type) != LL_CUDA_SUCCESS)
		type = LL_CU_GRAPH_NODE_TYPE_CONDITIONAL;
	if (type == LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		add_block(walk, node);
	} else if (type == LL_CU_GRAPH_NODE_TYPE_MEM_FREE) {
		if (ll_real()->cuGraphMemFreeNodeGetParams(node, &address) != LL_CUDA_SUCCESS)
			return;
		uint64_t *grown = append_item(walk->freed, &walk->freed_count, &walk->freed_capacity, sizeof *grown);
		if (!grown)
			return;
		walk->freed = grown;
		walk->freed[walk->freed_count - 1] = address;
	} else if (type == LL_CU_GRAPH_NODE_TYPE_CONDITIONAL || depth == DEEPEST ||
		   (type == LL_CU_GRAPH_NODE_TYPE_GRAPH &&
		    ll_real()->cuGraphChildGraphNodeGetGraph(node, &inside) != LL_CUDA_SUCCESS)) {
		walk->is_unknown = true;
	} else if (type == LL_CU_GRAPH_NODE_TYPE_GRAPH) {
		walk_graph(walk, inside, depth + 1);
	}
}

static void walk_graph(struct walk *walk, struct ll_cu_graph *graph, unsigned depth)
{
	size_t count = 0;
	if (ll_real()->cuGraphGetNodes(graph, NULL, &count) != LL_CUDA_SUCCESS)
		walk->is_unknown = true;
	if (!count || walk->is_unknown)
		return;
	struct ll_cu_graph_node **nodes = calloc(count, sizeof *nodes);
	if (!nodes || ll_real()->cuGraphGetNodes(graph, nodes, &count) != LL_CUDA_SUCCESS) {
		walk->is_unknown = true;
		count = 0;
	}
	for (size_t i = 0; i < count; i++)
		walk_node(walk, nodes[i], depth);
	free(nodes);
}

static bool frees_all(const struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++) {
		size_t k = 0;
		while (k < walk->freed_count && walk->freed[k] != walk->blocks[i].address)
			k++;
		if (k == walk->freed_count)
			return false;
	}
	return !walk->is_unknown;
}

/* If the content of a node cannot be read, the need is the sum of all allocating nodes that the program ever made, on
 * the current card. */
static struct ll_graph_memory *sum_up(struct walk *walk)
{
	struct ll_cu_context *context;
	struct ll_device_state *dev;
	struct ll_graph_memory *memory = calloc(1, sizeof *memory + (walk->count + 1) * sizeof memory->needs[0]);
	if (!memory)
		return NULL;
	memory->frees_all = frees_all(walk);
	if (walk->is_unknown) {
		if (ll_device_state_find(&context, &dev) == LL_CUDA_SUCCESS && dev && node_bytes)
			memory->needs[memory->count++] = (struct need){.dev = dev, .bytes = node_bytes};
		return memory;
	}
	ll_graph_need_sort(walk->blocks, walk->count);
	for (size_t i = 0, of_card; i < walk->count; i += of_card) {
		uint64_t bytes = ll_graph_need(walk->blocks + i, walk->count - i, &of_card);
		dev = ll_device_state_get(walk->blocks[i].device);
		if (dev && bytes)
			memory->needs[memory->count++] = (struct need){.dev = dev, .bytes = bytes};
	}
	return memory;
}

struct ll_graph_memory *ll_graph_memory_of(struct ll_cu_graph *graph)
{
	struct walk walk = {.count = 0};
	if (graph)
		walk_graph(&walk, graph, 0);
	struct ll_graph_memory *memory = walk.count || walk.is_unknown ? sum_up(&walk) : NULL;
	free(walk.blocks);
	free(walk.freed);
	return memory;
}

void ll_graph_memory_free(struct ll_graph_memory **memory)
{
	free(*memory);
	*memory = NULL;
}

void ll_graph_memory_forget(const struct ll_cu_graph_exec *exec)
{
	struct ll_extent extent;
	if (ll_graph_memory_is_used && ll_extents_remove(LL_EXTENT_GRAPH, ll_extent_handle(exec), &extent))
		free(extent.graph);
}

void ll_graph_memory_keep(const struct ll_cu_graph_exec *exec, struct ll_graph_memory **memory)
{
	struct ll_extent extent = {.kind = LL_EXTENT_GRAPH, .address = ll_extent_handle(exec), .graph = *memory};
	ll_graph_memory_forget(exec);
	if (*memory && ll_charge_put(&extent))
		*memory = NULL;
}

struct ll_graph_memory *ll_graph_memory_find(const struct ll_cu_graph_exec *exec)
{
	struct ll_extent extent;
	return ll_extents_find(LL_EXTENT_GRAPH, ll_extent_handle(exec), &extent) ? extent.graph : NULL;
}

/* ---- charges ---- */

static struct card *card_of(const struct ll_device_state *dev)
{
	return &cards[dev->device];
}

/* The card's lock is held. */
static bool settle_graphs(struct ll_device_state *dev)
{
	struct card *card = card_of(dev);
	uint64_t bytes = 0;
	if (ll_real()->cuDeviceGetGraphMemAttribute(dev->device, LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes) !=
	    LL_CUDA_SUCCESS)
		return true;
	if (bytes < card->has_bytes)
		epoch++;
	card->has_bytes = bytes;
	return ll_growth_settle(dev, &card->growth, bytes);
}

void ll_graph_memory_true_up_all(void)
{
	for (uint64_t left = used_cards; left; left &= left - 1) {
		struct ll_device_state *dev = ll_device_state_of(__builtin_ctzll(left));
		if (!dev)
			continue;
		ll_growth_lock(dev);
		settle_graphs(dev);
		ll_growth_unlock(dev);
	}
}

/* Calls the driver's trim while no launch in the driver needs the memory that graphs have. In the relaxed mode a thread
 * that captures a stream may call it too. The card's lock is held. */
static ll_cu_result trim_graph_memory(struct ll_device_state *dev, bool is_wanted)
{
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_cu_result status = LL_CUDA_SUCCESS;
	unsigned calls;
	bool is_closed = ll_growth_close(dev, LL_GROWTH_GRAPHS, DRAIN_MOST_NS, &calls);
	settle_graphs(dev);
	if (is_wanted || (is_closed && !card_of(dev)->certain_calls)) {
		if (!is_wanted)
			ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
		status = ll_real()->cuDeviceGraphMemTrim(dev->device);
		if (!is_wanted)
			ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
		/* A call that is still in the driver may take as much as the trim gave back, so the size may not tell
		 * of the trim. */
		epoch++;
		settle_graphs(dev);
	}
	if (is_closed)
		ll_growth_open(dev, LL_GROWTH_GRAPHS);
	return status;
}

bool ll_graph_memory_release(struct ll_device_state *dev)
{
	if (!(used_cards >> dev->device & 1))
		return false;
	ll_growth_lock(dev);
	uint64_t before = card_of(dev)->growth.charged_bytes;
	trim_graph_memory(dev, false);
	bool is_less = card_of(dev)->growth.charged_bytes < before;
	ll_growth_unlock(dev);
	return is_less;
}

ll_cu_result ll_graph_memory_trim(ll_cu_device device)
{
	struct ll_device_state *dev = ll_device_state_of(device);
	if (!dev || !(used_cards >> device & 1))
		return ll_real()->cuDeviceGraphMemTrim(device);
	ll_growth_lock(dev);
	ll_cu_result status = trim_graph_memory(dev, true);
	ll_growth_unlock(dev);
	return status;
}

/* ---- launches ---- */

static bool is_certain(const struct ll_graph_memory *memory, const struct ll_stream_place *place)
{
	return ll_stream_place_is(&memory->place, place) && memory->epoch == epoch;
}

static bool cover_need(struct ll_graph_cover *cover, size_t i)
{
	const struct need *need = &cover->memory->needs[i];
	struct ll_device_state *dev = need->dev;
	struct card *card = card_of(dev);
	ll_growth_lock(dev);
	used_cards |= UINT64_C(1) << dev->device;
	ll_growth_enter(dev, LL_GROWTH_GRAPHS);
	/* If a graph has returned its memory meanwhile, the launch is no longer certain. No trim runs while a certain
	 * launch is in the driver. */
	bool is_still = cover->is_certain && is_certain(cover->memory, &cover->place);
	int rc = is_still ? 0 : cover->is_certain ? -EAGAIN : ll_growth_reserve(dev, &card->growth, need->bytes);
	if (is_still) {
		card->certain_calls++;
		card->growth.pending_bytes += need->bytes;
	}
	if (rc == 0)
		cover->reserved |= UINT64_C(1) << i;
	if (rc != 0 && rc != -ESTALE)
		ll_growth_leave(dev, LL_GROWTH_GRAPHS);
	else
		cover->entered++;
	ll_growth_unlock(dev);
	return rc == 0 || rc == -ESTALE;
}

static void remove_cover(struct ll_graph_cover *cover)
{
	while (cover->entered > 0) {
		const struct need *need = &cover->memory->needs[--cover->entered];
		struct card *card = card_of(need->dev);
		ll_growth_lock(need->dev);
		if (cover->is_certain)
			card->certain_calls--;
		if (cover->reserved >> cover->entered & 1)
			card->growth.pending_bytes -= need->bytes;
		if (!settle_graphs(need->dev))
			cover->is_over = true;
		ll_growth_leave(need->dev, LL_GROWTH_GRAPHS);
		ll_growth_unlock(need->dev);
	}
	cover->reserved = 0;
}

static bool try_cover(struct ll_graph_cover *cover, bool is_certain)
{
	cover->is_certain = is_certain;
	cover->epoch = epoch;
	for (size_t i = 0; i < cover->memory->count; i++) {
		if (!cover_need(cover, i)) {
			remove_cover(cover);
			return false;
		}
	}
	return true;
}

static void release_all(const struct ll_graph_memory *memory)
{
	for (size_t i = 0; memory && i < memory->count; i++)
		ll_device_state_give_up_reserve(memory->needs[i].dev);
}

struct ll_graph_cover ll_graph_memory_begin(struct ll_graph_memory *memory, struct ll_cu_stream *stream)
{
	struct ll_graph_cover cover = {.memory = memory};
	if (!memory)
		return cover;
	cover.place = ll_stream_place_of(stream);
	if ((is_certain(memory, &cover.place) && try_cover(&cover, true)) || try_cover(&cover, false))
		return cover;
	release_all(memory);
	if (try_cover(&cover, false))
		return cover;
	for (size_t i = 0; i < memory->count; i++)
		ll_device_state_request_siblings(memory->needs[i].dev, memory->needs[i].bytes);
	cover.is_refused = !try_cover(&cover, false);
	return cover;
}

void ll_graph_memory_note(struct ll_graph_cover *cover, bool is_launched)
{
	struct ll_graph_memory *memory = cover->memory;
	if (!memory)
		return;
	bool is_lost = cover->epoch != epoch; /* perhaps a trim came between the driver's call and this */
	bool has_moved = memory->place.handle && !ll_stream_place_is(&memory->place, &cover->place);
	if (has_moved || (is_launched && !memory->frees_all))
		epoch++;
	memory->place = cover->place;
	memory->epoch = is_lost ? NEVER : epoch;
}

void ll_graph_memory_end(struct ll_graph_cover *cover)
{
	if (cover->memory && !cover->is_refused)
		remove_cover(cover);
	if (cover->is_over)
		release_all(cover->memory);
}
