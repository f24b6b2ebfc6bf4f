#include "shim/memory/pools.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/interpose/stream.h"
#include "shim/memory/memory.h"

/* ---- charges of what grows in the driver ---- */

enum { CARDS = 64 };

/* The longest wait for a closed card. After it a thread continues, because only a call of the driver that hangs takes
 * longer. */
#define ENTER_MOST_NS (2 * LL_NS_PER_S)

struct group {
	unsigned calls;
	bool is_closed;
};

static struct card {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned waiting;
	int cancel_state; /* cancel state that the thread with the lock had before it locked */
	struct group groups[LL_GROWTH_KINDS];
} cards[CARDS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local unsigned own_calls[LL_GROWTH_KINDS] __attribute__((tls_model("initial-exec")));

static void init_cards(void)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	for (size_t i = 0; i < CARDS; i++) {
		cards[i] = (struct card){.waiting = 0};
		pthread_mutex_init(&cards[i].lock, NULL);
		pthread_cond_init(&cards[i].changed, &monotonic);
	}
	pthread_condattr_destroy(&monotonic);
}

/* Resets all counts, because the parent's calls do not end in the child. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	init_cards();
	for (int i = 0; i < LL_GROWTH_KINDS; i++)
		own_calls[i] = 0;
}

static void init_once(void)
{
	static struct ll_fork_item fork_item = {.in_child = forget_in_child};
	init_cards();
	ll_fork_add(&fork_item);
}

static struct card *card_of(const struct ll_device_state *dev)
{
	return &cards[dev->device];
}

void ll_growth_lock(const struct ll_device_state *dev)
{
	int cancel_state;
	pthread_once(&once, init_once);
	struct card *card = card_of(dev);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&card->lock);
	card->cancel_state = cancel_state;
}

void ll_growth_unlock(const struct ll_device_state *dev)
{
	struct card *card = card_of(dev);
	int cancel_state = card->cancel_state;
	pthread_mutex_unlock(&card->lock);
	pthread_setcancelstate(cancel_state, NULL);
}

/* ---- calls in the driver ---- */

/* Releases the lock until another thread calls tell_change. Returns false if until_ns (CLOCK_MONOTONIC) is reached
 * first. */
static bool wait_for_change(struct card *card, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / LL_NS_PER_S), .tv_nsec = (long)(until_ns % LL_NS_PER_S)};
	int cancel_state = card->cancel_state;
	card->waiting++;
	int rc = pthread_cond_timedwait(&card->changed, &card->lock, &until);
	card->waiting--;
	card->cancel_state = cancel_state;
	return rc == 0;
}

static void tell_change(struct card *card)
{
	if (card->waiting)
		pthread_cond_broadcast(&card->changed);
}

void ll_growth_enter(const struct ll_device_state *dev, enum ll_growth_kind kind)
{
	struct card *card = card_of(dev);
	struct group *group = &card->groups[kind];
	uint64_t until_ns = group->is_closed ? ll_now_ns() + ENTER_MOST_NS : 0;
	while (group->is_closed && wait_for_change(card, until_ns))
		;
	group->calls++;
	own_calls[kind]++;
}

void ll_growth_leave(const struct ll_device_state *dev, enum ll_growth_kind kind)
{
	struct card *card = card_of(dev);
	card->groups[kind].calls--;
	own_calls[kind]--;
	tell_change(card);
}

bool ll_growth_close(const struct ll_device_state *dev, enum ll_growth_kind kind, uint64_t most_ns, unsigned *ret_calls)
{
	struct card *card = card_of(dev);
	struct group *group = &card->groups[kind];
	bool may_wait = most_ns && !own_calls[kind];
	uint64_t until_ns = may_wait ? ll_now_ns() + most_ns : 0;
	while (group->is_closed && may_wait && wait_for_change(card, until_ns))
		;
	if (group->is_closed)
		return false;
	group->is_closed = true;
	while (group->calls && may_wait && wait_for_change(card, until_ns))
		;
	*ret_calls = group->calls;
	return true;
}

void ll_growth_open(const struct ll_device_state *dev, enum ll_growth_kind kind)
{
	struct card *card = card_of(dev);
	card->groups[kind].is_closed = false;
	tell_change(card);
}

/* ---- charges ---- */

bool ll_growth_has_room(const struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_memory_view view;
	ll_port_read_memory(dev->claim, &view);
	return !view.limit_bytes ||
	       (view.used_bytes <= view.limit_bytes && bytes <= view.limit_bytes - view.used_bytes);
}

int ll_growth_reserve(struct ll_device_state *dev, struct ll_growth *growth, uint64_t bytes)
{
	int rc = ll_charge_reserve(dev, bytes);
	if (rc == 0) {
		growth->charged_bytes += bytes;
		growth->pending_bytes += bytes;
	}
	return rc;
}

bool ll_growth_settle(struct ll_device_state *dev, struct ll_growth *growth, uint64_t has_bytes)
{
	/* The pending bytes of a call are charged, and the driver may have allocated them already. So the charge is too
	 * high only if it exceeds the sum of has_bytes and pending_bytes. */
	uint64_t most_bytes = has_bytes + growth->pending_bytes, before = growth->charged_bytes;
	int rc = 0;
	if (before > most_bytes) {
		growth->charged_bytes = most_bytes;
		ll_device_state_release(dev, before - most_bytes);
	} else if (has_bytes > before) {
		growth->charged_bytes = has_bytes;
		rc = ll_charge_reserve(dev, has_bytes - before);
		if (rc != 0)
			ll_device_state_charge(dev, has_bytes - before);
	}
	return rc != -ENOMEM;
}

/* ---- gaps of a pool ---- */

/* Keeps the gaps of pools when streams reach their frees, when the program waits, and when streams end. */

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

/* Finds streams with gaps of at least `bytes`, and returns their number. The card's lock is held. */
static size_t find_streams(struct ll_pool *pool, uint64_t bytes, struct ll_stream_place *ret_places)
{
	size_t count = 0;
	for (size_t i = 0; i < pool->gaps.count && count < STREAMS; i++) {
		const struct ll_gap *gap = &pool->gaps.gaps[i];
		bool is_among = false;
		for (size_t k = 0; k < count; k++)
			is_among |= ret_places[k].handle == gap->place.handle;
		if (gap->bytes >= bytes && !gap->expected && !ll_stream_is_default(gap->place.handle) && !is_among)
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
	tell_change(card_of(pool->dev));
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
			wait_for_change(card_of(dev), ll_now_ns() + ASKED_PAUSE_NS);
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
