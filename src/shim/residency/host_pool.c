#include "shim/residency/host_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/guest_thread.h"
#include "base/host_memory.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/extents.h"

/* Contexts end without a word to this thread. */
#define LOOK_NS (1 * LL_NS_PER_S)
/* If the host had no memory, the next attempt is made after this time. */
#define SHORT_NS (1 * LL_NS_PER_S)
/* Memory that was not wanted for this long is freed. */
#define UNUSED_NS (10 * LL_NS_PER_S)

enum { STACK_BYTES = 256 * 1024, PAGE_BYTES = 4096 };

struct ll_host_pool {
	const struct ll_device_state *dev;
	char *base; /* addresses of the whole pool; steps that are not ready have no memory */
	uint64_t most_bytes;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	bool has_thread;
	uint64_t wanted_bytes, needed_bytes, ready_bytes;
	uint64_t short_ns;  /* when the host last had no memory; 0: it has some */
	uint64_t unused_ns; /* since when much more is ready than is wanted; 0: it is not */
	/* used by the thread of the pool only */
	struct ll_cu_context *context; /* the context in which memory is registered */
};

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + LL_POOL_STEP_BYTES - 1) / LL_POOL_STEP_BYTES * LL_POOL_STEP_BYTES;
}

static void init_lock(struct ll_host_pool *pool)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

struct ll_host_pool *ll_host_pool_new(const struct ll_device_state *dev, uint64_t most_bytes)
{
	struct ll_host_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return NULL;
	*pool = (struct ll_host_pool){.dev = dev, .most_bytes = round_up(most_bytes)};
	init_lock(pool);
	/* Addresses without access rights count only for the limit of addresses, not of memory. */
	void *base = mmap(NULL, pool->most_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		free(pool);
		return NULL;
	}
	madvise(base, pool->most_bytes, MADV_DONTDUMP);
	madvise(base, pool->most_bytes, MADV_DONTFORK);
	madvise(base, pool->most_bytes, MADV_HUGEPAGE);
	pool->base = base;
	return pool;
}

struct ll_cu_context *ll_host_pool_context(const struct ll_device_state *dev)
{
	struct ll_extent context = {.kind = LL_EXTENT_CONTEXT};
	while (ll_extents_next(&context) && context.kind == LL_EXTENT_CONTEXT) {
		if (context.dev == dev)
			return (struct ll_cu_context *)(uintptr_t)context.address;
	}
	return NULL;
}

/* ---- a step ---- */

static bool is_room(uint64_t bytes, bool is_needed)
{
	uint64_t all = ll_host_memory_bytes(), limit = ll_host_group_limit_bytes();
	uint64_t left = is_needed ? ll_host_reserve_bytes() : (all < limit ? all : limit) / 2;
	uint64_t available = ll_host_available_bytes();
	return available >= bytes && available - bytes >= left;
}

/* The kernel before 5.14 does not know MADV_POPULATE_WRITE. */
static void touch_page(char *at)
{
#ifdef MADV_POPULATE_WRITE
	if (madvise(at, LL_POOL_STEP_BYTES, MADV_POPULATE_WRITE) == 0)
		return;
#endif
	for (uint64_t i = 0; i < LL_POOL_STEP_BYTES; i += PAGE_BYTES)
		((volatile char *)at)[i] = 0;
}

/* Memory that cannot be registered is used too, with slower copies. */
static void register_step(struct ll_host_pool *pool, char *at)
{
	struct ll_cu_context *popped, *context = ll_host_pool_context(pool->dev);
	if (!context || ll_real()->cuCtxPushCurrent_v2(context) != LL_CUDA_SUCCESS)
		return;
	ll_real()->cuMemHostRegister_v2(at, LL_POOL_STEP_BYTES, LL_CU_MEMHOSTREGISTER_PORTABLE);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	pool->context = context;
}

/* Returns false if the host is short of memory. */
static bool make_step(struct ll_host_pool *pool, uint64_t offset, bool is_needed)
{
	char *at = pool->base + offset;
	if (!is_room(LL_POOL_STEP_BYTES, is_needed) || mprotect(at, LL_POOL_STEP_BYTES, PROT_READ | PROT_WRITE) < 0)
		return false;
	touch_page(at);
	register_step(pool, at);
	return true;
}

static void drop_step(struct ll_host_pool *pool, uint64_t offset)
{
	struct ll_cu_context *popped, *context = ll_host_pool_context(pool->dev);
	char *at = pool->base + offset;
	if (context && ll_real()->cuCtxPushCurrent_v2(context) == LL_CUDA_SUCCESS) {
		ll_real()->cuMemHostUnregister(at);
		ll_real()->cuCtxPopCurrent_v2(&popped);
	}
	/* If it is still registered its pages stay with the driver, and the addresses are good for the next step. */
	madvise(at, LL_POOL_STEP_BYTES, MADV_DONTNEED);
	mprotect(at, LL_POOL_STEP_BYTES, PROT_NONE);
}

/* When the context has ended, its registrations have ended too. */
static void follow_context(struct ll_host_pool *pool, uint64_t ready_bytes)
{
	struct ll_extent found;
	if (!pool->context || ll_extents_find(LL_EXTENT_CONTEXT, (uint64_t)(uintptr_t)pool->context, &found))
		return;
	pool->context = NULL;
	for (uint64_t offset = 0; offset < ready_bytes && ll_host_pool_context(pool->dev); offset += LL_POOL_STEP_BYTES)
		register_step(pool, pool->base + offset);
}

/* ---- the thread ---- */

enum work { NOTHING, MAKE_WANTED, MAKE_NEEDED, DROP };

/* The lock is held. */
static enum work next_work(struct ll_host_pool *pool, uint64_t now_ns)
{
	uint64_t most = pool->wanted_bytes > pool->needed_bytes ? pool->wanted_bytes : pool->needed_bytes;
	if (pool->short_ns && now_ns - pool->short_ns < SHORT_NS)
		return NOTHING;
	if (pool->ready_bytes < pool->needed_bytes)
		return MAKE_NEEDED;
	if (pool->ready_bytes < pool->wanted_bytes)
		return MAKE_WANTED;
	if (pool->ready_bytes / 2 <= most) {
		pool->unused_ns = 0;
		return NOTHING;
	}
	pool->unused_ns = pool->unused_ns ? pool->unused_ns : now_ns;
	return now_ns - pool->unused_ns >= UNUSED_NS ? DROP : NOTHING;
}

/* The lock is held, and released during the step. A step that is dropped counts as not ready from the start. */
static void do_work(struct ll_host_pool *pool, enum work work)
{
	uint64_t offset = pool->ready_bytes;
	if (work == DROP)
		pool->ready_bytes = offset -= LL_POOL_STEP_BYTES;
	pthread_mutex_unlock(&pool->lock);
	bool is_made = work != DROP && make_step(pool, offset, work == MAKE_NEEDED);
	if (work == DROP)
		drop_step(pool, offset);
	pthread_mutex_lock(&pool->lock);
	if (is_made)
		pool->ready_bytes += LL_POOL_STEP_BYTES;
	if (work != DROP)
		pool->short_ns = is_made ? 0 : ll_now_ns();
}

/* The lock is held. */
static void wait_for_change(struct ll_host_pool *pool)
{
	uint64_t until_ns = ll_now_ns() + LOOK_NS;
	struct timespec until = {.tv_sec = (time_t)(until_ns / LL_NS_PER_S), .tv_nsec = (long)(until_ns % LL_NS_PER_S)};
	pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
}

static void *pool_main(void *arg)
{
	struct ll_host_pool *pool = arg;
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	prctl(PR_SET_NAME, "ll-pool");
	ll_reentry_depth = 1;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		pthread_mutex_lock(&pool->lock);
		enum work work = next_work(pool, ll_now_ns());
		if (work)
			do_work(pool, work);
		else
			wait_for_change(pool);
		uint64_t ready_bytes = pool->ready_bytes;
		pthread_mutex_unlock(&pool->lock);
		follow_context(pool, ready_bytes);
	}
	return NULL;
}

/* ---- for the link ---- */

void ll_host_pool_want(struct ll_host_pool *pool, uint64_t bytes)
{
	uint64_t wanted = round_up(bytes);
	pthread_mutex_lock(&pool->lock);
	uint64_t before_bytes = pool->wanted_bytes;
	pool->needed_bytes = 0;
	pool->wanted_bytes = wanted < pool->most_bytes ? wanted : pool->most_bytes;
	if (wanted && !pool->has_thread)
		pool->has_thread = ll_guest_thread_start(STACK_BYTES, pool_main, pool, NULL) == 0;
	if (pool->wanted_bytes != before_bytes)
		pthread_cond_signal(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

int ll_host_pool_need(struct ll_host_pool *pool, uint64_t bytes, char *why, size_t why_size)
{
	uint64_t needed = round_up(bytes);
	pthread_mutex_lock(&pool->lock);
	if (pool->needed_bytes != needed) {
		pool->needed_bytes = needed;
		pool->short_ns = 0;
		pthread_cond_signal(&pool->changed);
	}
	if (needed > pool->ready_bytes && !pool->has_thread)
		pool->has_thread = ll_guest_thread_start(STACK_BYTES, pool_main, pool, NULL) == 0;
	bool has_none = pool->short_ns || !pool->has_thread || needed > pool->most_bytes;
	uint64_t ready_bytes = pool->ready_bytes;
	pthread_mutex_unlock(&pool->lock);
	if (ready_bytes >= needed)
		return 0;
	if (!has_none)
		return -EAGAIN;
	snprintf(why, why_size, "the host has memory for %" PRIu64 " of the %" PRIu64 " MiB that are to leave",
		 ready_bytes >> 20, bytes >> 20);
	return -ENOSPC;
}

uint64_t ll_host_pool_ready(struct ll_host_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	uint64_t bytes = pool->ready_bytes;
	pthread_mutex_unlock(&pool->lock);
	return bytes;
}

char *ll_host_pool_base(const struct ll_host_pool *pool)
{
	return pool->base;
}
