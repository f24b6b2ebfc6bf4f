#include "shim/memory/sizes.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/fork.h"

enum { PARTS = 64, FIRST_ROWS = 64 };

struct row {
	uint64_t name;
	struct ll_size size;
	uint8_t kind;
	bool is_used;
};

/* Open addressing, at most three quarters full; no gaps in a run of rows. */
struct part {
	pthread_mutex_t lock;
	struct row *rows;
	size_t capacity; /* a power of two */
	size_t count;
} __attribute__((aligned(64)));

static struct part parts[PARTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_fork_item fork_item;

static void init_parts(void)
{
	for (size_t i = 0; i < PARTS; i++) {
		pthread_mutex_init(&parts[i].lock, NULL);
		parts[i].rows = NULL;
		parts[i].capacity = parts[i].count = 0;
	}
}

/* Rows that a thread of the parent was changing are left as they are. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	for (size_t i = 0; i < PARTS; i++) {
		if (pthread_mutex_trylock(&parts[i].lock) == 0)
			free(parts[i].rows);
	}
	init_parts();
}

static void begin(void)
{
	init_parts();
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

/* Addresses differ in their middle bits: all of them count for all of the result. */
static uint64_t hash(enum ll_size_kind kind, uint64_t name)
{
	uint64_t h = (name ^ (uint64_t)kind << 58) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= h >> 29;
	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

static struct part *lock_part(uint64_t h)
{
	pthread_once(&once, begin);
	struct part *part = &parts[h >> 58];
	pthread_mutex_lock(&part->lock);
	return part;
}

static void unlock_part(struct part *part)
{
	pthread_mutex_unlock(&part->lock);
}

/* The row of that name, or the free one where it belongs. There is a free one. */
static struct row *row_of(const struct part *part, uint64_t h, enum ll_size_kind kind, uint64_t name)
{
	size_t mask = part->capacity - 1, i = h & mask;
	while (part->rows[i].is_used && (part->rows[i].name != name || part->rows[i].kind != kind))
		i = (i + 1) & mask;
	return &part->rows[i];
}

static struct row *find(const struct part *part, uint64_t h, enum ll_size_kind kind, uint64_t name)
{
	struct row *row = part->count ? row_of(part, h, kind, name) : NULL;
	return row && row->is_used ? row : NULL;
}

static bool grow(struct part *part)
{
	struct part larger = {.capacity = part->capacity ? part->capacity * 2 : FIRST_ROWS};
	int code = errno;
	larger.rows = calloc(larger.capacity, sizeof *larger.rows);
	errno = code;
	if (!larger.rows)
		return false;
	for (size_t i = 0; i < part->capacity; i++) {
		const struct row *row = &part->rows[i];
		if (row->is_used)
			*row_of(&larger, hash(row->kind, row->name), row->kind, row->name) = *row;
	}
	free(part->rows);
	part->rows = larger.rows;
	part->capacity = larger.capacity;
	return true;
}

/* Moves later rows of the run into the gap where they may stand. */
static void remove_row(struct part *part, struct row *row)
{
	size_t mask = part->capacity - 1, gap = (size_t)(row - part->rows);
	for (size_t i = (gap + 1) & mask; part->rows[i].is_used; i = (i + 1) & mask) {
		size_t home = hash(part->rows[i].kind, part->rows[i].name) & mask;
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		part->rows[gap] = part->rows[i];
		gap = i;
	}
	part->rows[gap].is_used = false;
	part->count--;
}

bool ll_sizes_put(enum ll_size_kind kind, uint64_t name, const struct ll_size *size, struct ll_size *ret_stale)
{
	uint64_t h = hash(kind, name);
	struct part *part = lock_part(h);
	bool has_room = (part->count + 1) * 4 <= part->capacity * 3 || grow(part);
	struct row *row = has_room ? row_of(part, h, kind, name) : NULL;
	if (ret_stale)
		*ret_stale = row && row->is_used ? row->size : (struct ll_size){0};
	if (row) {
		part->count += !row->is_used;
		*row = (struct row){.name = name, .size = *size, .kind = (uint8_t)kind, .is_used = true};
	}
	unlock_part(part);
	return has_room;
}

bool ll_sizes_take(enum ll_size_kind kind, uint64_t name, struct ll_size *ret_size)
{
	uint64_t h = hash(kind, name);
	struct part *part = lock_part(h);
	struct row *row = find(part, h, kind, name);
	if (row) {
		*ret_size = row->size;
		remove_row(part, row);
	}
	unlock_part(part);
	return row != NULL;
}

bool ll_sizes_find(enum ll_size_kind kind, uint64_t name, struct ll_size *ret_size)
{
	uint64_t h = hash(kind, name);
	struct part *part = lock_part(h);
	const struct row *row = find(part, h, kind, name);
	if (row)
		*ret_size = row->size;
	unlock_part(part);
	return row != NULL;
}

uint64_t ll_sizes_take_owned(uint64_t owner)
{
	uint64_t bytes = 0;
	for (uint64_t p = 0; owner && p < PARTS; p++) {
		struct part *part = lock_part(p << 58);
		for (size_t i = 0; i < part->capacity;) {
			struct row *row = &part->rows[i];
			if (row->is_used && row->size.owner == owner) {
				bytes += row->size.bytes;
				remove_row(part, row); /* another one may have come here */
			} else {
				i++;
			}
		}
		unlock_part(part);
	}
	return bytes;
}

size_t ll_sizes_count(void)
{
	size_t count = 0;
	for (uint64_t p = 0; p < PARTS; p++) {
		struct part *part = lock_part(p << 58);
		count += part->count;
		unlock_part(part);
	}
	return count;
}
