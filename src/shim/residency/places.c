#include "shim/residency/move.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/host.h"
#include "base/scope.h"
#include "shim/interpose/device_uuid.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/memory.h"

/* ---- memory of the host ---- */

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

uint64_t ll_host_pool_step_end(uint64_t offset)
{
	uint64_t end = LL_POOL_FIRST_BYTES;
	if (offset >= LL_POOL_STEP_BYTES)
		return offset / LL_POOL_STEP_BYTES * LL_POOL_STEP_BYTES + LL_POOL_STEP_BYTES;
	while (end <= offset)
		end *= 2;
	return end;
}

/* The step that ends there. */
static uint64_t step_begin(uint64_t end)
{
	if (end > LL_POOL_STEP_BYTES)
		return end - LL_POOL_STEP_BYTES;
	return end > LL_POOL_FIRST_BYTES ? end / 2 : 0;
}

static uint64_t round_up(uint64_t bytes)
{
	return bytes ? ll_host_pool_step_end(bytes - 1) : 0;
}

struct ll_host_pool *ll_host_pool_new(const struct ll_device_state *dev, uint64_t most_bytes)
{
	struct ll_host_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return NULL;
	*pool = (struct ll_host_pool){.dev = dev, .most_bytes = round_up(most_bytes)};
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
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

/* Memory that cannot be registered is used too, with slower copies. */
static void register_step(struct ll_host_pool *pool, uint64_t offset)
{
	struct ll_cu_context *popped, *context = ll_host_pool_context(pool->dev);
	if (!context || ll_real()->cuCtxPushCurrent_v2(context) != LL_CUDA_SUCCESS)
		return;
	ll_real()->cuMemHostRegister_v2(pool->base + offset, ll_host_pool_step_end(offset) - offset,
					LL_CU_MEMHOSTREGISTER_PORTABLE);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	pool->context = context;
}

/* Returns false if the host is short of memory. */
static bool make_step(struct ll_host_pool *pool, uint64_t offset, bool is_needed)
{
	char *at = pool->base + offset;
	uint64_t bytes = ll_host_pool_step_end(offset) - offset;
	uint64_t all = ll_host_memory_bytes(), limit = ll_host_group_limit_bytes();
	uint64_t left = is_needed ? ll_host_reserve_bytes() : (all < limit ? all : limit) / 2;
	uint64_t available = ll_host_available_bytes();
	if (available < bytes || available - bytes < left || mprotect(at, bytes, PROT_READ | PROT_WRITE) < 0)
		return false;
	bool is_there = false;
#ifdef MADV_POPULATE_WRITE
	is_there = madvise(at, bytes, MADV_POPULATE_WRITE) == 0;
#endif
	/* The kernel before 5.14 does not know it. */
	for (uint64_t i = 0; !is_there && i < bytes; i += PAGE_BYTES)
		((volatile char *)at)[i] = 0;
	register_step(pool, offset);
	return true;
}

static void drop_step(struct ll_host_pool *pool, uint64_t offset)
{
	struct ll_cu_context *popped, *context = ll_host_pool_context(pool->dev);
	char *at = pool->base + offset;
	uint64_t bytes = ll_host_pool_step_end(offset) - offset;
	if (context && ll_real()->cuCtxPushCurrent_v2(context) == LL_CUDA_SUCCESS) {
		ll_real()->cuMemHostUnregister(at);
		ll_real()->cuCtxPopCurrent_v2(&popped);
	}
	/* If it is still registered its pages stay with the driver, and the addresses are good for the next step. */
	madvise(at, bytes, MADV_DONTNEED);
	mprotect(at, bytes, PROT_NONE);
}

/* When the context has ended, its registrations have ended too. */
static void follow_context(struct ll_host_pool *pool, uint64_t ready_bytes)
{
	struct ll_extent found;
	if (!pool->context || ll_extents_find(LL_EXTENT_CONTEXT, (uint64_t)(uintptr_t)pool->context, &found))
		return;
	pool->context = NULL;
	for (uint64_t offset = 0; offset < ready_bytes && ll_host_pool_context(pool->dev);
	     offset = ll_host_pool_step_end(offset))
		register_step(pool, offset);
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
		pool->ready_bytes = offset = step_begin(offset);
	pthread_mutex_unlock(&pool->lock);
	bool is_made = work != DROP && make_step(pool, offset, work == MAKE_NEEDED);
	if (work == DROP)
		drop_step(pool, offset);
	pthread_mutex_lock(&pool->lock);
	if (is_made)
		pool->ready_bytes = ll_host_pool_step_end(offset);
	if (work != DROP)
		pool->short_ns = is_made ? 0 : ll_now_ns();
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
		uint64_t until_ns = ll_now_ns() + LOOK_NS;
		struct timespec until = {.tv_sec = (time_t)(until_ns / LL_NS_PER_S),
					 .tv_nsec = (long)(until_ns % LL_NS_PER_S)};
		if (work)
			do_work(pool, work);
		else
			pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
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

/* ---- memory of other cards ---- */

enum { PROCESSES = 64, NAME_SIZE = 16 };

/* ---- the cards ---- */

size_t ll_neighbours_find(const struct ll_device_state *dev, struct ll_neighbour neighbours[LL_NEIGHBOURS])
{
	size_t found = 0;
	int count = 0;
	if (ll_real()->cuDeviceGetCount(&count) != LL_CUDA_SUCCESS)
		return 0;
	for (ll_cu_device i = 0; i < count && found < LL_NEIGHBOURS; i++) {
		struct ll_neighbour *neighbour = &neighbours[found];
		int can = 0, has_atomics = 0;
		neighbour->device = i;
		/* Native atomics tell NVLink from the bus, over which a copy is no faster than to the host. */
		found += i != dev->device &&
			 ll_real()->cuDeviceCanAccessPeer(&can, dev->device, i) == LL_CUDA_SUCCESS && can &&
			 ll_real()->cuDeviceGetP2PAttribute(&has_atomics, LL_CU_P2P_NATIVE_ATOMIC_SUPPORTED,
							    dev->device, i) == LL_CUDA_SUCCESS &&
			 has_atomics && ll_device_uuid(i, neighbour->uuid, sizeof neighbour->uuid);
	}
	return found;
}

/* ---- what NVML says of them ---- */

/* Whether the process is a synthetic load, by its name. Its number means the same here, or NVML would not name it. */
static bool is_loadline(unsigned pid)
{
	char path[32], name[NAME_SIZE] = "";
	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, name, sizeof name - 1) > 0 && strncmp(name, "loadline", strlen("loadline")) == 0;
}

typedef ll_nvml_result list_fn(struct ll_nvml_device *card, unsigned int *count, struct ll_nvml_process *processes);

static uint64_t count_loads(struct ll_nvml_device *card, list_fn *list)
{
	struct ll_nvml_process processes[PROCESSES];
	unsigned count = PROCESSES;
	uint64_t bytes = 0;
	if (list(card, &count, processes) != LL_NVML_SUCCESS)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		if (processes[i].used_bytes != LL_NVML_VALUE_NOT_AVAILABLE && is_loadline(processes[i].pid))
			bytes += processes[i].used_bytes;
	}
	return bytes;
}

bool ll_neighbour_read(const char *uuid, uint64_t *ret_free_bytes, uint64_t *ret_used_bytes)
{
	struct ll_nvml_device *card;
	struct ll_nvml_memory_v2 memory = {.version = LL_NVML_MEMORY_V2};
	static _Atomic bool is_ready; /* a process has a link for each card */
	if (!is_ready)
		is_ready = ll_real_nvml()->nvmlInit_v2() == LL_NVML_SUCCESS;
	if (!is_ready || ll_real_nvml()->nvmlDeviceGetHandleByUUID(uuid, &card) != LL_NVML_SUCCESS ||
	    ll_real_nvml()->nvmlDeviceGetMemoryInfo_v2(card, &memory) != LL_NVML_SUCCESS)
		return false;
	uint64_t loads_bytes = count_loads(card, ll_real_nvml()->nvmlDeviceGetComputeRunningProcesses_v3) +
			       count_loads(card, ll_real_nvml()->nvmlDeviceGetGraphicsRunningProcesses_v3);
	*ret_free_bytes = memory.free_bytes;
	*ret_used_bytes = memory.used_bytes > loads_bytes ? memory.used_bytes - loads_bytes : 0;
	return true;
}

/* ---- memory there ---- */

ll_cu_result ll_neighbour_block_make(const struct ll_device_state *dev, ll_cu_device neighbour, uint64_t bytes,
				     struct ll_neighbour_block *ret_block)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, neighbour}};
	struct ll_neighbour_block block = {.bytes = bytes};
	ll_cu_result status = ll_real()->cuMemCreate(&block.handle, bytes, &prop, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_chunk_map_aside(dev, block.handle, bytes, &block.address);
	if (status == LL_CUDA_SUCCESS)
		*ret_block = block;
	else
		ll_real()->cuMemRelease(block.handle);
	return status;
}

void ll_neighbour_block_free(struct ll_neighbour_block *block)
{
	if (!block->address)
		return;
	ll_chunk_unmap_aside(block->address, block->bytes);
	ll_real()->cuMemRelease(block->handle);
	*block = (struct ll_neighbour_block){0};
}
