#include "shim/memory/pools.h"

#include <stdlib.h>
#include <string.h>

#include "shim/memory/memory.h"

static uint64_t room_of(uint64_t bytes)
{
	return ll_footprint_round(bytes, LL_GAPS_BLOCK_BYTES);
}

/* Returns the index of the first gap that ends after the address. */
static size_t find_gap_at(const struct ll_gaps *gaps, uint64_t address)
{
	size_t low = 0, high = gaps->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (gaps->gaps[middle].address + gaps->gaps[middle].bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_room(struct ll_gaps *gaps)
{
	if (gaps->count < gaps->capacity)
		return true;
	size_t capacity = gaps->capacity ? gaps->capacity * 2 : 16;
	struct ll_gap *grown = capacity <= LL_GAPS_MOST ? realloc(gaps->gaps, capacity * sizeof *grown) : NULL;
	if (!grown)
		return false;
	gaps->gaps = grown;
	gaps->capacity = capacity;
	return true;
}

static void insert_gap(struct ll_gaps *gaps, const struct ll_gap *gap)
{
	if (!gap->bytes || !has_room(gaps))
		return;
	size_t i = find_gap_at(gaps, gap->address);
	memmove(&gaps->gaps[i + 1], &gaps->gaps[i], (gaps->count - i) * sizeof *gap);
	gaps->gaps[i] = *gap;
	gaps->count++;
}

static void remove_at(struct ll_gaps *gaps, size_t i)
{
	gaps->count--;
	memmove(&gaps->gaps[i], &gaps->gaps[i + 1], (gaps->count - i) * sizeof gaps->gaps[0]);
}

uint64_t ll_gaps_next(const struct ll_gaps *gaps, uint64_t address)
{
	size_t i = find_gap_at(gaps, address);
	if (i == gaps->count)
		return UINT64_MAX;
	return gaps->gaps[i].address > address ? gaps->gaps[i].address : address;
}

void ll_gaps_add_free(struct ll_gaps *gaps, uint64_t address, uint64_t bytes)
{
	struct ll_gap gap = {.address = address, .bytes = bytes};
	insert_gap(gaps, &gap);
}

void ll_gaps_remove(struct ll_gaps *gaps, uint64_t address, uint64_t bytes)
{
	uint64_t end = address + room_of(bytes);
	size_t i = find_gap_at(gaps, address);
	while (i < gaps->count && gaps->gaps[i].address < end) {
		struct ll_gap gap = gaps->gaps[i], before = gap, behind = gap;
		before.bytes = address > gap.address ? address - gap.address : 0;
		behind.bytes = gap.address + gap.bytes > end ? gap.address + gap.bytes - end : 0;
		behind.address = end;
		remove_at(gaps, i);
		insert_gap(gaps, &before);
		insert_gap(gaps, &behind);
		i += before.bytes != 0;
	}
}

void ll_gaps_expect(struct ll_gaps *gaps, uint64_t address, uint64_t bytes, uint32_t expected)
{
	struct ll_gap gap = {.address = address, .bytes = room_of(bytes), .expected = expected};
	ll_gaps_remove(gaps, address, bytes); /* removes older gaps at these addresses */
	insert_gap(gaps, &gap);
}

void ll_gaps_settle(struct ll_gaps *gaps, uint32_t expected, const struct ll_stream_place *place, uint64_t number)
{
	for (size_t i = gaps->count; i-- > 0;) {
		struct ll_gap *gap = &gaps->gaps[i];
		if (gap->expected != expected)
			continue;
		if (!place) {
			remove_at(gaps, i);
			continue;
		}
		gap->expected = 0;
		gap->place = *place;
		gap->number = number;
	}
}

bool ll_gaps_fit(const struct ll_gaps *gaps, uint64_t bytes, const struct ll_stream_place *place)
{
	uint64_t room = room_of(bytes);
	for (size_t i = 0; i < gaps->count; i++) {
		const struct ll_gap *gap = &gaps->gaps[i];
		if (gap->bytes >= room && !gap->expected &&
		    (!gap->place.handle || ll_stream_place_is(&gap->place, place)))
			return true;
	}
	return false;
}

void ll_gaps_waited(struct ll_gaps *gaps, const struct ll_stream_place *place, uint64_t last_number)
{
	for (size_t i = 0; i < gaps->count; i++) {
		struct ll_gap *gap = &gaps->gaps[i];
		if (gap->number <= last_number && ll_stream_place_is(&gap->place, place))
			gap->place = (struct ll_stream_place){.handle = NULL};
	}
}

void ll_gaps_forget_stream(struct ll_gaps *gaps, const struct ll_cu_stream *handle)
{
	for (size_t i = gaps->count; i-- > 0;) {
		if (gaps->gaps[i].place.handle == handle)
			remove_at(gaps, i);
	}
}

void ll_gaps_clear(struct ll_gaps *gaps)
{
	gaps->count = 0;
}

void ll_gaps_fini(struct ll_gaps *gaps)
{
	free(gaps->gaps);
	*gaps = (struct ll_gaps){.count = 0};
}
