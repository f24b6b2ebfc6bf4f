#include "mover/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "mover/host.h"

/* When a host that was short of memory is asked again. */
#define SHORT_NS (1 * LL_NS_PER_S)

enum { FILLERS = 4 }; /* more threads do not fill pages faster (doc/facts.md) */

struct range {
	uint64_t offset, bytes;
	struct range *next;
};

struct ll_mover_pool {
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	int fd;
	char *base;
	uint64_t budget_bytes;
	uint64_t reserved_bytes; /* taken or to be taken */
	uint64_t known_bytes;    /* of what is pinned: in `free` or taken */
	struct range *free;      /* in the order of offsets; no two touch */

	pthread_t pinner;
	bool has_pinner;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t wanted_bytes, pinned_bytes;
	bool is_short; /* the host has no memory for the next step */
	uint64_t short_ns;
	bool is_ending;
};

uint64_t ll_mover_pool_default_budget(void)
{
	uint64_t half = ll_host_memory_bytes() / 2;
	uint64_t limit = ll_host_group_limit_bytes();
	uint64_t most = limit / 2 < half ? limit / 2 : half;
	return most - most % LL_MOVER_POOL_STEP_BYTES;
}

/* ---- pinning ---- */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* linux/mman.h; glibc has it since 2.35 */
#endif

struct filler {
	pthread_t thread;
	char *begin;
	size_t bytes;
	int rc;
	bool is_running;
};

/* Has the kernel give the pages. A kernel before 5.14 is made to by a write to each page. */
static void *fill_pages(void *arg)
{
	struct filler *filler = arg;
	filler->rc = madvise(filler->begin, filler->bytes, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
	if (filler->rc == -EINVAL) {
		for (size_t at = 0; at < filler->bytes; at += (size_t)sysconf(_SC_PAGESIZE))
			((volatile char *)filler->begin)[at] = 0;
		filler->rc = 0;
	}
	return NULL;
}

static int fill_step(char *begin)
{
	struct filler fillers[FILLERS];
	size_t part = LL_MOVER_POOL_STEP_BYTES / FILLERS;
	int rc = 0;
	for (size_t i = 0; i < FILLERS; i++) {
		fillers[i] = (struct filler){.begin = begin + i * part, .bytes = part};
		fillers[i].is_running = !pthread_create(&fillers[i].thread, NULL, fill_pages, &fillers[i]);
		if (!fillers[i].is_running)
			fill_pages(&fillers[i]);
	}
	for (size_t i = 0; i < FILLERS; i++) {
		if (fillers[i].is_running)
			pthread_join(fillers[i].thread, NULL);
		rc = fillers[i].rc ? fillers[i].rc : rc;
	}
	return rc;
}

/* One step more. False: the host cannot give it now. */
static bool pin_step(struct ll_mover_pool *pool, uint64_t offset)
{
	char *begin = pool->base + offset;
	if (ll_host_available_bytes() < LL_MOVER_POOL_STEP_BYTES + ll_host_reserve_bytes() || fill_step(begin) < 0)
		return false;
	if (pool->cuda->cuMemHostRegister(begin, LL_MOVER_POOL_STEP_BYTES, 0) == LL_CUDA_SUCCESS)
		return true;
	madvise(begin, LL_MOVER_POOL_STEP_BYTES, MADV_REMOVE);
	return false;
}

static void note_short(struct ll_mover_pool *pool)
{
	pool->is_short = true;
	pool->short_ns = ll_now_ns();
}

static void *pinner_main(void *arg)
{
	struct ll_mover_pool *pool = arg;
	pool->cuda->cuCtxSetCurrent(pool->context);
	pthread_mutex_lock(&pool->lock);
	while (!pool->is_ending) {
		if (pool->pinned_bytes >= pool->wanted_bytes || pool->is_short) {
			pthread_cond_wait(&pool->changed, &pool->lock);
			continue;
		}
		uint64_t offset = pool->pinned_bytes;
		pthread_mutex_unlock(&pool->lock);
		bool is_pinned = pin_step(pool, offset);
		pthread_mutex_lock(&pool->lock);
		if (is_pinned)
			pool->pinned_bytes += LL_MOVER_POOL_STEP_BYTES;
		else
			note_short(pool);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static void want_pinned(struct ll_mover_pool *pool, uint64_t bytes, uint64_t pause_ns)
{
	uint64_t steps = bytes / LL_MOVER_POOL_STEP_BYTES + (bytes % LL_MOVER_POOL_STEP_BYTES ? 1 : 0);
	uint64_t most = pool->budget_bytes / LL_MOVER_POOL_STEP_BYTES;
	uint64_t wanted = (steps < most ? steps : most) * LL_MOVER_POOL_STEP_BYTES;
	pthread_mutex_lock(&pool->lock);
	pool->wanted_bytes = wanted > pool->wanted_bytes ? wanted : pool->wanted_bytes;
	if (pool->is_short && ll_now_ns() - pool->short_ns >= pause_ns)
		pool->is_short = false; /* the host may have memory again */
	pthread_cond_signal(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

void ll_mover_pool_want(struct ll_mover_pool *pool, uint64_t bytes)
{
	want_pinned(pool, bytes, SHORT_NS);
}

uint64_t ll_mover_pool_pinned(const struct ll_mover_pool *pool)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&pool->lock;
	pthread_mutex_lock(lock);
	uint64_t bytes = pool->pinned_bytes;
	pthread_mutex_unlock(lock);
	return bytes;
}

/* ---- the pool ---- */

static int map_file(struct ll_mover_pool *pool, struct ll_err *err)
{
	pool->fd = memfd_create("loadline pool", MFD_CLOEXEC);
	if (pool->fd < 0 || ftruncate(pool->fd, (off_t)pool->budget_bytes) < 0)
		return ll_err_set(err, -errno, "the pool's file: %s", strerror(errno));
	void *base = mmap(NULL, pool->budget_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, pool->fd, 0);
	if (base == MAP_FAILED)
		return ll_err_set(err, -errno, "map %" PRIu64 " MiB for the pool: %s", pool->budget_bytes >> 20,
				  strerror(errno));
	pool->base = base;
	madvise(base, pool->budget_bytes, MADV_DONTDUMP);
	return 0;
}

int ll_mover_pool_new(const struct ll_cuda *cuda, struct ll_cu_context *context, uint64_t budget_bytes,
		      struct ll_mover_pool **ret_pool, struct ll_err *err)
{
	budget_bytes -= budget_bytes % LL_MOVER_POOL_STEP_BYTES;
	if (!budget_bytes)
		return ll_err_set(err, -EINVAL, "the pool has at least %" PRIu64 " MiB",
				  LL_MOVER_POOL_STEP_BYTES >> 20);
	struct ll_mover_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return ll_err_set(err, -ENOMEM, "the pool: %s", strerror(ENOMEM));
	*pool = (struct ll_mover_pool){.cuda = cuda, .context = context, .fd = -1, .budget_bytes = budget_bytes};
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	int rc = map_file(pool, err);
	if (!rc) {
		int code = pthread_create(&pool->pinner, NULL, pinner_main, pool);
		pool->has_pinner = !code;
		if (code)
			rc = ll_err_set(err, -code, "a thread for the pool: %s", strerror(code));
	}
	if (rc)
		ll_mover_pool_free(pool);
	else
		*ret_pool = pool;
	return rc;
}

void ll_mover_pool_free(struct ll_mover_pool *pool)
{
	if (!pool)
		return;
	if (pool->has_pinner) {
		pthread_mutex_lock(&pool->lock);
		pool->is_ending = true;
		pthread_cond_signal(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
		pthread_join(pool->pinner, NULL);
	}
	for (uint64_t offset = 0; offset < pool->pinned_bytes; offset += LL_MOVER_POOL_STEP_BYTES)
		pool->cuda->cuMemHostUnregister(pool->base + offset);
	if (pool->base)
		munmap(pool->base, pool->budget_bytes);
	if (pool->fd >= 0)
		close(pool->fd);
	while (pool->free) {
		struct range *next = pool->free->next;
		free(pool->free);
		pool->free = next;
	}
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int ll_mover_pool_fd(const struct ll_mover_pool *pool)
{
	return pool->fd;
}

uint64_t ll_mover_pool_budget(const struct ll_mover_pool *pool)
{
	return pool->budget_bytes;
}

char *ll_mover_pool_at(const struct ll_mover_pool *pool, uint64_t offset)
{
	return pool->base + offset;
}

/* ---- room ---- */

int ll_mover_pool_reserve(struct ll_mover_pool *pool, uint64_t bytes)
{
	if (bytes > pool->budget_bytes - pool->reserved_bytes)
		return -ENOSPC;
	pool->reserved_bytes += bytes;
	want_pinned(pool, pool->reserved_bytes, 0);
	int rc = ll_mover_pool_is_ready(pool);
	if (rc == -ENOSPC)
		pool->reserved_bytes -= bytes;
	return rc;
}

void ll_mover_pool_unreserve(struct ll_mover_pool *pool, uint64_t bytes)
{
	pool->reserved_bytes -= bytes;
}

int ll_mover_pool_is_ready(const struct ll_mover_pool *pool)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&pool->lock;
	pthread_mutex_lock(lock);
	int rc = pool->pinned_bytes >= pool->reserved_bytes ? 0 : pool->is_short ? -ENOSPC : -EAGAIN;
	pthread_mutex_unlock(lock);
	return rc;
}

/* Puts the range into the list, and joins it with its neighbours. False: no memory for the list. */
static bool add_range(struct ll_mover_pool *pool, uint64_t offset, uint64_t bytes)
{
	struct range *before = NULL, *after = pool->free;
	while (after && after->offset < offset) {
		before = after;
		after = after->next;
	}
	if (before && before->offset + before->bytes == offset) {
		before->bytes += bytes;
		if (after && before->offset + before->bytes == after->offset) {
			before->bytes += after->bytes;
			before->next = after->next;
			free(after);
		}
		return true;
	}
	if (after && offset + bytes == after->offset) {
		after->offset = offset;
		after->bytes += bytes;
		return true;
	}
	struct range *range = malloc(sizeof *range);
	if (!range)
		return false;
	*range = (struct range){offset, bytes, after};
	if (before)
		before->next = range;
	else
		pool->free = range;
	return true;
}

/* What was pinned since the last time is free. */
static void learn_pinned(struct ll_mover_pool *pool)
{
	uint64_t pinned = ll_mover_pool_pinned(pool);
	if (pinned > pool->known_bytes && add_range(pool, pool->known_bytes, pinned - pool->known_bytes))
		pool->known_bytes = pinned;
}

/* The beginning of the range at the offset. */
static void take_part(struct ll_mover_pool *pool, const struct ll_mover_place *place)
{
	struct range **link = &pool->free;
	struct range *range;
	while ((range = *link) && range->offset != place->offset)
		link = &range->next;
	if (!range)
		return;
	range->offset += place->bytes;
	range->bytes -= place->bytes;
	if (!range->bytes) {
		*link = range->next;
		free(range);
	}
}

/* The largest range that comes after `after` in the order from large to small; NULL: the largest of all. */
static const struct range *next_smaller(const struct ll_mover_pool *pool, const struct range *after)
{
	const struct range *found = NULL;
	for (const struct range *range = pool->free; range; range = range->next) {
		bool is_smaller = !after || range->bytes < after->bytes ||
				  (range->bytes == after->bytes && range->offset > after->offset);
		if (is_smaller && (!found || range->bytes > found->bytes))
			found = range;
	}
	return found;
}

/* Returns how many bytes were found, in LL_MOVER_PLACES at most. */
static uint64_t choose_places(const struct ll_mover_pool *pool, uint64_t bytes, bool is_by_size,
			      struct ll_mover_place ret_places[LL_MOVER_PLACES], uint32_t *ret_count)
{
	uint64_t found = 0;
	uint32_t count = 0;
	const struct range *range = is_by_size ? next_smaller(pool, NULL) : pool->free;
	while (range && found < bytes && count < LL_MOVER_PLACES) {
		uint64_t part = range->bytes < bytes - found ? range->bytes : bytes - found;
		ret_places[count++] = (struct ll_mover_place){range->offset, part};
		found += part;
		range = is_by_size ? next_smaller(pool, range) : range->next;
	}
	*ret_count = count;
	return found;
}

int ll_mover_pool_take(struct ll_mover_pool *pool, uint64_t bytes, struct ll_mover_place ret_places[LL_MOVER_PLACES],
		       uint32_t *ret_count)
{
	uint32_t count;
	learn_pinned(pool);
	uint64_t found = choose_places(pool, bytes, false, ret_places, &count);
	if (found < bytes)
		found = choose_places(pool, bytes, true, ret_places, &count);
	if (found < bytes)
		return count == LL_MOVER_PLACES ? -ENOBUFS : -ENOSPC;
	for (uint32_t i = 0; i < count; i++)
		take_part(pool, &ret_places[i]);
	*ret_count = count;
	return 0;
}

void ll_mover_pool_give(struct ll_mover_pool *pool, const struct ll_mover_place *places, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pool->reserved_bytes -= places[i].bytes;
		add_range(pool, places[i].offset, places[i].bytes); /* without memory for it the range is lost */
	}
}
