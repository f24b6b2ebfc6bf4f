/* Keeps the gaps of pools when streams reach their frees, when the program waits, and when streams end. */
#include "base/clock.h"
#include "shim/interpose/stream.h"
#include "shim/memory/footprint.h"
#include "shim/memory/pool_state.h"

static _Atomic uint64_t last_gap; /* number of the last gap */

uint64_t ll_pools_new_free(void)
{
	return ++last_gap;
}

void ll_pool_forget_gaps(struct ll_pool *pool)
{
	ll_gaps_clear(&pool->gaps);
	pool->is_known = false;
}

/* ---- streams that have reached their frees ---- */

enum { STREAMS = 8 };

/* The destruction of a stream waits until no thread asks the driver about streams: at most ASKED_PAUSES times
 * ASKED_PAUSE_NS. The query takes longer only while another thread is in a call on the stream. A correct program does
 * not destroy a stream in this time. */
#define ASKED_PAUSE_NS (20 * LL_NS_PER_MS)
enum { ASKED_PAUSES = 100 };

static bool is_among(const struct ll_stream_place *places, size_t count, const struct ll_cu_stream *handle)
{
	for (size_t i = 0; i < count; i++) {
		if (places[i].handle == handle)
			return true;
	}
	return false;
}

/* Finds streams with gaps of at least `bytes`, and returns their number. The card's lock is held. */
static size_t find_streams(struct ll_pool *pool, uint64_t bytes, struct ll_stream_place *ret_places)
{
	size_t count = 0;
	for (size_t i = 0; i < pool->gaps.count && count < STREAMS; i++) {
		const struct ll_gap *gap = &pool->gaps.gaps[i];
		if (gap->bytes >= bytes && !gap->expected && !ll_stream_is_default(gap->place.handle) &&
		    !is_among(ret_places, count, gap->place.handle))
			ret_places[count++] = gap->place;
	}
	return count;
}

/* Asks the driver without the lock, because the driver only answers when the stream's queue has room. */
bool ll_pool_ask_streams(struct ll_pool *pool, uint64_t bytes)
{
	struct ll_stream_place places[STREAMS];
	bool is_idle[STREAMS], is_any = false;
	uint64_t may_reuse;
	if (ll_pool_read(pool, LL_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &may_reuse) || !(may_reuse & INT32_MAX))
		return false;
	struct ll_pool_card *card = ll_pool_card_lock(pool->dev);
	uint64_t last_free = last_gap;
	size_t count = find_streams(pool, bytes, places);
	card->asking += count != 0;
	ll_growth_unlock(pool->dev);
	if (!count)
		return false;
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	for (size_t i = 0; i < count; i++)
		is_any |= is_idle[i] = ll_stream_is_idle(places[i].handle);
	ll_stream_exchange_capture_mode(mode);
	ll_pool_card_lock(pool->dev);
	for (size_t i = 0; i < count; i++) {
		if (is_idle[i])
			ll_gaps_waited(&pool->gaps, &places[i], last_free);
	}
	card->asking--;
	ll_growth_tell(pool->dev);
	ll_growth_unlock(pool->dev);
	return is_any;
}

/* ---- the gap behind a block for which a pool has grown ---- */

#define STEP_BYTES LL_FOOTPRINT_POOL_STEP_BYTES

/* Returns the end of the step that contains the byte before `end`. */
static uint64_t step_end(const struct ll_pool *pool, uint64_t end)
{
	return end + (pool->base - end) % STEP_BYTES;
}

/* Returns the begin of the next block or gap after the address, at most `most`. */
static uint64_t next_known(const struct ll_pool *pool, uint64_t address, uint64_t most)
{
	struct ll_extent next = {.kind = LL_EXTENT_PLAIN, .address = address - 1};
	uint64_t gap = ll_gaps_next(&pool->gaps, address);
	most = gap < most ? gap : most;
	if (ll_extents_next(&next) && ll_extent_has_address(next.kind) && next.address < most)
		most = next.address;
	return most;
}

/* If the pool was empty before, the block's address is the begin of a step. Older steps may contain freed memory that
 * the library has forgotten. So the gap is noted only if no known block or gap is in it, and only if the block is in
 * new steps. The block's first step may be older if the former growth ended there. */
void ll_pool_note_growth(struct ll_pool *pool, uint64_t address, uint64_t bytes, uint64_t grown_bytes)
{
	uint64_t end = address + ll_footprint_round(bytes, LL_GAPS_BLOCK_BYTES);
	if (grown_bytes == pool->has_bytes) {
		pool->base = address;
		pool->is_known = true;
	}
	if (!pool->base || !grown_bytes)
		return;
	uint64_t last = step_end(pool, end), start = step_end(pool, address + 1) - STEP_BYTES;
	uint64_t touched = last - start;
	bool is_at_end =
	    address == start ? grown_bytes == touched : pool->is_known && grown_bytes + STEP_BYTES == touched;
	if (is_at_end && end < last && next_known(pool, end, last) == last)
		ll_gaps_add_free(&pool->gaps, end, last - end);
}

/* ---- waits, and streams that end ---- */

struct wait {
	struct ll_stream_place place; /* all zero: the wait was not for one stream */
	uint64_t last_gap;
};

/* If the pool's release threshold is below its size, the pool may have returned its free memory to the card. Then all
 * its gaps are forgotten. */
static void note_wait(struct ll_pool *pool, const void *argument)
{
	const struct wait *wait = argument;
	uint64_t threshold;
	if (!pool->gaps.count)
		return;
	if (ll_pool_read(pool, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) || threshold < pool->has_bytes)
		ll_pool_forget_gaps(pool);
	else
		ll_gaps_waited(&pool->gaps, &wait->place, wait->last_gap);
}

/* Calls change() for each pool of all cards, under the card's lock. */
static void change_pools(void (*change)(struct ll_pool *pool, const void *argument), const void *argument)
{
	for (uint64_t left = ll_pool_cards(); left; left &= left - 1) {
		struct ll_device_state *dev = ll_device_state_of(__builtin_ctzll(left));
		const struct ll_pool_card *card = dev ? ll_pool_card_lock(dev) : NULL;
		for (struct ll_pool *pool = card ? card->pools : NULL; pool; pool = pool->next)
			change(pool, argument);
		if (card)
			ll_growth_unlock(dev);
	}
}

uint64_t ll_pools_last_free(void)
{
	return last_gap;
}

void ll_pools_waited_for_stream(struct ll_cu_stream *stream, uint64_t last_free)
{
	struct wait wait = {.place = ll_stream_place_of(stream), .last_gap = last_free};
	change_pools(note_wait, &wait);
}

void ll_pools_waited(void)
{
	struct wait wait = {.last_gap = 0};
	change_pools(note_wait, &wait);
}

static void forget_stream(struct ll_pool *pool, const void *stream)
{
	size_t before = pool->gaps.count;
	ll_gaps_forget_stream(&pool->gaps, stream);
	pool->is_known &= pool->gaps.count == before;
}

/* Waits until no thread asks the driver about streams. A thread that asks now has found the stream before it was
 * forgotten. */
static void wait_for_asking(void)
{
	for (uint64_t left = ll_pool_cards(); left; left &= left - 1) {
		struct ll_device_state *dev = ll_device_state_of(__builtin_ctzll(left));
		const struct ll_pool_card *card = dev ? ll_pool_card_lock(dev) : NULL;
		for (int i = 0; card && card->asking && i < ASKED_PAUSES; i++)
			ll_growth_wait(dev, ASKED_PAUSE_NS);
		if (card)
			ll_growth_unlock(dev);
	}
}

void ll_pools_forget_stream(struct ll_cu_stream *stream)
{
	uint64_t last_free = last_gap;
	if (!ll_pools_are_used || ll_stream_is_default(stream))
		return;
	if (ll_stream_is_idle(stream))
		ll_pools_waited_for_stream(stream, last_free);
	change_pools(forget_stream, stream);
	wait_for_asking();
}

static void forget_all_streams(struct ll_pool *pool, const void *argument)
{
	(void)argument;
	ll_pool_forget_gaps(pool);
}

void ll_pools_forget_streams(void)
{
	if (!ll_pools_are_used)
		return;
	change_pools(forget_all_streams, NULL);
	wait_for_asking();
}
