#include "shim/memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/guest.h"

enum { CHUNK_EXTENTS = 64, FIRST_ROWS = 16, SPACES = LL_EXTENT_KINDS - LL_EXTENT_MAPPING };

/* Sorted extents. The addresses are in an array of their own, so that a search reads few cache lines. */
struct chunk {
	size_t count; /* 0 only if it is the only chunk */
	uint64_t addresses[CHUNK_EXTENTS];
	struct ll_extent extents[CHUNK_EXTENTS];
};

/* All extents with addresses, or all extents of one kind of handle. */
struct space {
	uint64_t *from; /* first address of each chunk; a chunk has the extents up to the next chunk's `from`; the first
			   value is 0 */
	struct chunk **chunks; /* in ascending order */
	size_t count, capacity;
};

/* The position of an extent in the map, or the position where it belongs. */
struct place {
	struct space *space;
	size_t row, index; /* row: the chunk; index: the position in the chunk */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards spaces */
static struct space spaces[SPACES];

/* Empties the map. If a thread of the parent was changing the map at the fork, the map's memory is not freed. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	bool is_whole = pthread_mutex_trylock(&lock) == 0;
	for (struct space *space = spaces; is_whole && space < spaces + SPACES; space++) {
		for (size_t i = 0; i < space->count; i++)
			free(space->chunks[i]);
		free(space->chunks);
		free(space->from);
	}
	memset(spaces, 0, sizeof spaces);
	pthread_mutex_init(&lock, NULL);
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

static void lock_map(void)
{
	ll_fork_add(&fork_item);
	pthread_mutex_lock(&lock);
}

static void unlock_map(void)
{
	pthread_mutex_unlock(&lock);
}

static struct space *space_of(enum ll_extent_kind kind)
{
	return &spaces[ll_extent_has_address(kind) ? 0 : kind - LL_EXTENT_MAPPING];
}

/* Returns how many of these ascending numbers are at most `number`. The compiler makes no branch of the condition in
 * the loop. A processor would predict such a branch wrongly half of the time. */
static size_t count_up_to(const uint64_t *numbers, size_t count, uint64_t number)
{
	const uint64_t *base = numbers;
	if (!count)
		return 0;
	for (; count > 1; count -= count / 2)
		base = base[count / 2 - 1] <= number ? base + count / 2 : base;
	return (size_t)(base - numbers) + (*base <= number);
}

/* Returns the position of the first extent after the address. It may be the end of a chunk. */
static struct place place_after(struct space *space, uint64_t address)
{
	struct place place = {.space = space};
	if (!space->count)
		return place;
	place.row = count_up_to(space->from, space->count, address) - 1;
	const struct chunk *chunk = space->chunks[place.row];
	place.index = count_up_to(chunk->addresses, chunk->count, address);
	return place;
}

static struct ll_extent *extent_before(struct place place)
{
	if (!place.index && !place.row)
		return NULL;
	struct chunk *chunk = place.space->chunks[place.index ? place.row : place.row - 1];
	return &chunk->extents[(place.index ? place.index : chunk->count) - 1];
}

static struct ll_extent *extent_at(struct place place)
{
	const struct space *space = place.space;
	if (place.row < space->count && place.index < space->chunks[place.row]->count)
		return &space->chunks[place.row]->extents[place.index];
	return place.row + 1 < space->count ? space->chunks[place.row + 1]->extents : NULL;
}

/* Returns the extent of this kind at this address, and its position. NULL: there is none. */
static struct ll_extent *find_exact(enum ll_extent_kind kind, uint64_t address, struct place *ret_place)
{
	struct place place = place_after(space_of(kind), address);
	struct ll_extent *extent = extent_before(place);
	if (!extent || extent->kind != kind || extent->address != address)
		return NULL;
	place.index--;
	*ret_place = place;
	return extent;
}

static void move_extents(struct chunk *to, size_t at, const struct chunk *from, size_t first, size_t count)
{
	memmove(to->addresses + at, from->addresses + first, count * sizeof *to->addresses);
	memmove(to->extents + at, from->extents + first, count * sizeof *to->extents);
}

static void move_rows(struct space *space, size_t to, size_t from)
{
	memmove(space->from + to, space->from + from, (space->count - from) * sizeof *space->from);
	memmove(space->chunks + to, space->chunks + from, (space->count - from) * sizeof *space->chunks);
}

/* Joins each chunk of these rows with the chunk before it, if one of the two is empty or both together fill at most
 * half a chunk. */
static void join_chunks(struct space *space, size_t first, size_t stop)
{
	size_t last = first;
	for (size_t i = first + 1; i < stop; i++) {
		struct chunk *into = space->chunks[last], *chunk = space->chunks[i];
		if (into->count && chunk->count && into->count + chunk->count > CHUNK_EXTENTS / 2) {
			last++;
			space->from[last] = space->from[i];
			space->chunks[last] = chunk;
			continue;
		}
		move_extents(into, into->count, chunk, 0, chunk->count);
		into->count += chunk->count;
		free(chunk);
	}
	if (last + 1 < stop) {
		move_rows(space, last + 1, stop);
		space->count -= stop - last - 1;
	}
}

static void remove_extent(struct place place)
{
	struct space *space = place.space;
	struct chunk *chunk = space->chunks[place.row];
	chunk->count--;
	move_extents(chunk, place.index, chunk, place.index + 1, chunk->count - place.index);
	if (chunk->count < CHUNK_EXTENTS / 4)
		join_chunks(space, place.row ? place.row - 1 : 0,
			    place.row + 1 < space->count ? place.row + 2 : space->count);
}

static bool has_room_for_row(struct space *space)
{
	if (space->count < space->capacity)
		return true;
	struct space larger = {.count = space->count, .capacity = space->capacity ? 2 * space->capacity : FIRST_ROWS};
	larger.from = calloc(larger.capacity, sizeof *larger.from);
	larger.chunks = calloc(larger.capacity, sizeof *larger.chunks);
	bool is_larger = larger.from && larger.chunks;
	if (is_larger && space->count) {
		memcpy(larger.from, space->from, space->count * sizeof *larger.from);
		memcpy(larger.chunks, space->chunks, space->count * sizeof *larger.chunks);
	}
	struct space unused = is_larger ? *space : larger;
	free(unused.from);
	free(unused.chunks);
	*space = is_larger ? larger : *space;
	return is_larger;
}

/* Adds a row with an empty chunk; NULL: there is no memory for it. */
static struct chunk *add_row(struct space *space, size_t at, uint64_t from)
{
	int code = errno;
	struct chunk *chunk = has_room_for_row(space) ? malloc(sizeof *chunk) : NULL;
	errno = code;
	if (!chunk)
		return NULL;
	move_rows(space, at + 1, at);
	chunk->count = 0;
	space->from[at] = from;
	space->chunks[at] = chunk;
	space->count++;
	return chunk;
}

/* Moves the later half of a full chunk into a new chunk. If the full chunk is the last one, it moves only one extent,
 * so that chunks stay full when addresses ascend. */
static bool split_chunk(struct place full)
{
	bool is_growing = full.row + 1 == full.space->count && full.index == CHUNK_EXTENTS;
	size_t kept = is_growing ? CHUNK_EXTENTS - 1 : CHUNK_EXTENTS / 2;
	struct chunk *chunk = full.space->chunks[full.row];
	struct chunk *added = add_row(full.space, full.row + 1, chunk->addresses[kept]);
	if (!added)
		return false;
	added->count = CHUNK_EXTENTS - kept;
	move_extents(added, 0, chunk, kept, added->count);
	chunk->count = kept;
	return true;
}

static bool insert_extent(struct place place, const struct ll_extent *extent)
{
	if (!place.space->count && !add_row(place.space, 0, 0))
		return false;
	if (place.space->chunks[place.row]->count == CHUNK_EXTENTS) {
		if (!split_chunk(place))
			return false;
		place = place_after(place.space, extent->address);
	}
	struct chunk *chunk = place.space->chunks[place.row];
	move_extents(chunk, place.index + 1, chunk, place.index, chunk->count - place.index);
	chunk->addresses[place.index] = extent->address;
	chunk->extents[place.index] = *extent;
	chunk->count++;
	return true;
}

static uint64_t length_of(const struct ll_extent *extent)
{
	return ll_extent_has_address(extent->kind) && extent->bytes ? extent->bytes : 1;
}

static bool do_overlap(const struct ll_extent *a, const struct ll_extent *b)
{
	return a && (a->address - b->address < length_of(b) || b->address - a->address < length_of(a));
}

int ll_extents_put(const struct ll_extent *extent, struct ll_extent *ret_stale)
{
	int rc = -EEXIST;
	lock_map();
	struct place place = place_after(space_of(extent->kind), extent->address);
	const struct ll_extent *before = extent_before(place), *after = extent_at(place);
	const struct ll_extent *other = do_overlap(before, extent) ? before : do_overlap(after, extent) ? after : NULL;
	if (other) {
		*ret_stale = *other;
		find_exact(ret_stale->kind, ret_stale->address, &place);
		remove_extent(place);
	} else {
		rc = insert_extent(place, extent) ? 0 : -ENOMEM;
	}
	unlock_map();
	return rc;
}

bool ll_extents_change(enum ll_extent_kind kind, uint64_t address,
		       bool (*change)(struct ll_extent *extent, uint64_t argument), uint64_t argument,
		       struct ll_extent *ret_before)
{
	struct place place;
	lock_map();
	struct ll_extent *extent = find_exact(kind, address, &place);
	if (extent && ret_before)
		*ret_before = *extent;
	if (extent && !change(extent, argument))
		remove_extent(place);
	unlock_map();
	return extent != NULL;
}

static bool remove_any(struct ll_extent *extent, uint64_t argument)
{
	(void)extent;
	(void)argument;
	return false;
}

static bool keep_any(struct ll_extent *extent, uint64_t argument)
{
	(void)extent;
	(void)argument;
	return true;
}

bool ll_extents_remove(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent)
{
	return ll_extents_change(kind, address, remove_any, 0, ret_extent);
}

bool ll_extents_find(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent)
{
	return ll_extents_change(kind, address, keep_any, 0, ret_extent);
}

static bool find_containing(enum ll_extent_kind kind, uint64_t address, struct ll_extent *ret_extent)
{
	lock_map();
	const struct ll_extent *extent = extent_before(place_after(space_of(kind), address));
	bool is_found = extent && address - extent->address < extent->bytes;
	if (is_found)
		*ret_extent = *extent;
	unlock_map();
	return is_found;
}

bool ll_extents_find_containing(uint64_t address, struct ll_extent *ret_extent)
{
	return find_containing(LL_EXTENT_PLAIN, address, ret_extent);
}

bool ll_extents_find_backing(uint64_t address, struct ll_extent *ret_backing)
{
	return find_containing(LL_EXTENT_BACKING, address, ret_backing);
}

bool ll_extents_next(struct ll_extent *extent)
{
	lock_map();
	struct space *space = space_of(extent->kind);
	const struct ll_extent *next = extent_at(place_after(space, extent->address));
	while (!next && ++space < spaces + SPACES)
		next = extent_at((struct place){.space = space});
	if (next)
		*extent = *next;
	unlock_map();
	return next != NULL;
}

static uint64_t remove_owned_in(struct chunk *chunk, uint64_t owner)
{
	uint64_t bytes = 0;
	size_t kept = 0;
	for (size_t i = 0; i < chunk->count; i++) {
		if (chunk->extents[i].owner == owner)
			bytes += chunk->extents[i].charged_bytes;
		else
			move_extents(chunk, kept++, chunk, i, 1);
	}
	chunk->count = kept;
	return bytes;
}

uint64_t ll_extents_remove_owned(uint64_t owner)
{
	uint64_t bytes = 0;
	lock_map();
	for (struct space *space = spaces; owner && space < spaces + SPACES; space++) {
		for (size_t i = 0; i < space->count; i++)
			bytes += remove_owned_in(space->chunks[i], owner);
		join_chunks(space, 0, space->count);
	}
	unlock_map();
	return bytes;
}

size_t ll_extents_count(size_t *ret_chunks)
{
	size_t count = 0;
	*ret_chunks = 0;
	lock_map();
	for (const struct space *space = spaces; space < spaces + SPACES; space++) {
		for (size_t i = 0; i < space->count; i++) {
			count += space->chunks[i]->count;
			*ret_chunks += space->chunks[i]->count != 0;
		}
	}
	unlock_map();
	return count;
}

/* ---- how much of the card the driver takes ---- */

enum { SMALL_STEP_BYTES = 512, TILE_ROW_BYTES = 64, TILE_ROWS = 8, TILE_MOST_ROWS = 128, TILE_MOST_PLANES = 16 };
#define SMALL_MOST_BYTES UINT64_C(0x100000)

uint64_t ll_footprint_round(uint64_t bytes, uint64_t unit)
{
	uint64_t up;
	return __builtin_add_overflow(bytes, unit - 1, &up) ? UINT64_MAX : up & ~(unit - 1);
}

static uint64_t multiply_capped(uint64_t a, uint64_t b)
{
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t ll_footprint_plain(uint64_t bytes)
{
	return ll_footprint_round(bytes, bytes <= SMALL_MOST_BYTES ? SMALL_STEP_BYTES : LL_FOOTPRINT_BLOCK_BYTES);
}

uint64_t ll_footprint_pitched(uint64_t width_bytes, uint64_t height)
{
	return ll_footprint_plain(multiply_capped(ll_footprint_round(width_bytes, SMALL_STEP_BYTES), height));
}

/* Returns the bytes per channel. Formats other than the plain ones (planar video, compressed blocks) have at most four.
 */
static uint64_t channel_bytes(enum ll_cu_array_format format)
{
	switch (format) {
	case LL_CU_AD_FORMAT_UNSIGNED_INT8:
	case LL_CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case LL_CU_AD_FORMAT_UNSIGNED_INT16:
	case LL_CU_AD_FORMAT_SIGNED_INT16:
	case LL_CU_AD_FORMAT_HALF:
		return 2;
	default:
		return 4;
	}
}

static uint64_t round_to_tile(uint64_t value, uint64_t least, uint64_t most)
{
	uint64_t size = least;
	while (size < most && size < value)
		size *= 2;
	return ll_footprint_round(value, size);
}

static uint64_t at_level(uint64_t value, unsigned level)
{
	return value == 0 || level >= 64 ? value != 0 : value >> level ? value >> level : 1;
}

static uint64_t level_bytes(const struct ll_cu_array3d_descriptor *shape, unsigned level)
{
	bool is_layered = shape->flags & (LL_CUDA_ARRAY3D_LAYERED | LL_CUDA_ARRAY3D_CUBEMAP);
	uint64_t element_bytes = multiply_capped(channel_bytes(shape->format), shape->channels);
	uint64_t row =
	    ll_footprint_round(multiply_capped(at_level(shape->width, level), element_bytes), TILE_ROW_BYTES);
	uint64_t height = at_level(shape->height, level);
	if (!shape->depth)
		return multiply_capped(row, height ? round_to_tile(height, TILE_ROWS, TILE_MOST_ROWS) : 1);
	if (is_layered)
		return multiply_capped(
		    multiply_capped(row, round_to_tile(height ? height : 1, TILE_ROWS, TILE_MOST_ROWS)), shape->depth);
	uint64_t planes = round_to_tile(at_level(shape->depth, level), 1, TILE_MOST_PLANES);
	return multiply_capped(multiply_capped(row, ll_footprint_round(height ? height : 1, TILE_ROWS)), planes);
}

static unsigned most_levels(const struct ll_cu_array3d_descriptor *shape)
{
	uint64_t side = shape->width | shape->height | shape->depth;
	return side ? 64 - (unsigned)__builtin_clzll(side) : 1;
}

uint64_t ll_footprint_array(const struct ll_cu_array3d_descriptor *shape, unsigned levels)
{
	uint64_t bytes = 0;
	if (shape->flags & (LL_CUDA_ARRAY3D_SPARSE | LL_CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0;
	if (levels > most_levels(shape))
		levels = most_levels(shape);
	for (unsigned i = 0; i < levels; i++)
		bytes = add_capped(bytes, level_bytes(shape, i));
	return ll_footprint_plain(bytes);
}

uint64_t ll_footprint_stacks(const struct ll_footprint_card *card, uint64_t stack_bytes)
{
	return multiply_capped(multiply_capped(stack_bytes, card->threads_per_sm), card->sm_count);
}

uint64_t ll_footprint_context(const struct ll_footprint_card *card, uint64_t stack_bytes)
{
	return add_capped(card->sm_count * LL_FOOTPRINT_BLOCK_BYTES, ll_footprint_stacks(card, stack_bytes));
}

/* ---- graphs ---- */

static bool is_before(const struct ll_graph_block *a, const struct ll_graph_block *b)
{
	return a->device != b->device ? a->device < b->device : a->address < b->address;
}

/* Shell's sort, because qsort allocates memory in some C libraries. */
void ll_graph_need_sort(struct ll_graph_block *blocks, size_t count)
{
	for (size_t step = count / 2; step > 0; step = step == 2 ? 1 : step * 5 / 11) {
		for (size_t i = step; i < count; i++) {
			struct ll_graph_block block = blocks[i];
			size_t k = i;
			for (; k >= step && is_before(&block, &blocks[k - step]); k -= step)
				blocks[k] = blocks[k - step];
			blocks[k] = block;
		}
	}
}

uint64_t ll_graph_need(const struct ll_graph_block *blocks, size_t count, size_t *ret_count)
{
	uint64_t sum = 0;
	size_t i = 0;
	while (i < count && blocks[i].device == blocks[0].device) {
		uint64_t start = blocks[i].address, end = add_capped(start, blocks[i].bytes);
		for (i++; i < count && blocks[i].device == blocks[0].device && blocks[i].address < end; i++) {
			uint64_t its_end = add_capped(blocks[i].address, blocks[i].bytes);
			end = its_end > end ? its_end : end;
		}
		sum = add_capped(sum, ll_footprint_round(end - start, LL_FOOTPRINT_POOL_STEP_BYTES));
	}
	*ret_count = i;
	return sum;
}
