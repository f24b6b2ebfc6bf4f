/*
 * libcupti as far as loadline calls it, over what the simulated driver ran (sim/cuda/local/activity.h). It
 * delivers records when a buffer is full and when it is asked to flush, as the real one does.
 *
 *     FAKE_CUPTI_VERSION=19    its API version, and with it how long its records are; 130001 unless told
 *     FAKE_CUPTI_REFUSE=39     cuptiActivityEnable answers this
 *     FAKE_CUPTI_NO_CLOCK=1    takes no clock: times are CLOCK_REALTIME
 *     FAKE_CUPTI_KEEP=10       keeps this many records and drops the others
 *     FAKE_CUPTI_TIMELESS=4    does not know when the first kernels were
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../sim/cuda/local/activity.h"
#include "abi/cupti.h"
#include "base/clock.h"

#define EXPORT __attribute__((visibility("default")))
#define LL_CUPTI_FUNCTION(name, need, params) EXPORT ll_cupti_result name params;
#include "abi/cupti_functions.def"

/* Longer than ours, as the real ones are; 130000 on is longest. */
enum { KERNEL_OLD = 144, KERNEL_NEW = 216, MEMCPY_OLD = 64, MEMCPY_NEW = 96, MEMSET = 88, MEMORY = 128 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ll_cupti_request request;
static ll_cupti_complete complete;
static ll_cupti_clock clock_of_caller;
static uint64_t enabled; /* a bit for each kind */
static uint8_t *buffer;
static size_t buffer_bytes, used;
static size_t kept;
static _Atomic size_t dropped; /* asked with the lock and without */

static unsigned long number_in(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);
	return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

static bool is_new(void)
{
	return number_in("FAKE_CUPTI_VERSION", 130001) >= 130000;
}

static size_t size_of(uint32_t kind)
{
	switch (kind) {
	case LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL:
		return is_new() ? KERNEL_NEW : KERNEL_OLD;
	case LL_CUPTI_ACTIVITY_MEMCPY:
		return is_new() ? MEMCPY_NEW : MEMCPY_OLD;
	case LL_CUPTI_ACTIVITY_MEMSET:
		return MEMSET;
	default:
		return MEMORY;
	}
}

static void deliver(void)
{
	uint8_t *full = buffer;
	if (full)
		complete(NULL, 0, full, buffer_bytes, used);
	buffer = NULL;
	used = 0;
}

static void *place_for(uint32_t kind)
{
	size_t bytes = size_of(kind), most;
	if (!(enabled >> kind & 1))
		return NULL;
	if (kept >= number_in("FAKE_CUPTI_KEEP", SIZE_MAX)) {
		dropped++;
		return NULL;
	}
	if (buffer && used + bytes > buffer_bytes)
		deliver();
	if (!buffer)
		request(&buffer, &buffer_bytes, &most);
	if (!buffer) {
		dropped++;
		return NULL;
	}
	void *place = buffer + used;
	memset(place, 0xa5, bytes); /* what we do not know of a record is anything */
	memcpy(place, &kind, sizeof kind);
	used += bytes;
	kept++;
	return place;
}

static uint64_t stamp(uint64_t monotonic_ns)
{
	return clock_of_caller ? monotonic_ns : monotonic_ns + (ll_wall_ns() - ll_now_ns());
}

static void add_kernel(const struct sim_activity *a)
{
	struct ll_cupti_kernel *kernel = place_for(LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL);
	if (!kernel)
		return;
	kernel->registers = 24;
	bool is_timeless = a->correlation <= number_in("FAKE_CUPTI_TIMELESS", 0);
	kernel->start_ns = is_timeless ? 0 : stamp(a->start_ns);
	kernel->end_ns = is_timeless ? 0 : stamp(a->end_ns);
	kernel->device = a->device;
	kernel->context = a->context;
	kernel->stream = a->stream;
	kernel->grid_x = (int32_t)a->grid[0];
	kernel->grid_y = (int32_t)a->grid[1];
	kernel->grid_z = (int32_t)a->grid[2];
	kernel->block_x = (int32_t)a->block[0];
	kernel->block_y = (int32_t)a->block[1];
	kernel->block_z = (int32_t)a->block[2];
	kernel->static_shared_bytes = 0;
	kernel->dynamic_shared_bytes = (int32_t)a->dynamic_shared_bytes;
	kernel->correlation = a->correlation;
	kernel->name = strdup(a->name); /* the real one keeps them for ever, too */
}

static void add_copy(const struct sim_activity *a)
{
	struct ll_cupti_memcpy *copy = place_for(LL_CUPTI_ACTIVITY_MEMCPY);
	if (!copy)
		return;
	copy->from_kind = a->is_from_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_PAGEABLE;
	copy->to_kind = a->is_to_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_PAGEABLE;
	copy->bytes = a->bytes;
	copy->start_ns = stamp(a->start_ns);
	copy->end_ns = stamp(a->end_ns);
	copy->device = a->device;
	copy->context = a->context;
	copy->stream = a->stream;
	copy->correlation = a->correlation;
}

static void add_memset(const struct sim_activity *a)
{
	struct ll_cupti_memset *set = place_for(LL_CUPTI_ACTIVITY_MEMSET);
	if (!set)
		return;
	set->bytes = a->bytes;
	set->start_ns = stamp(a->start_ns);
	set->end_ns = stamp(a->end_ns);
	set->device = a->device;
	set->context = a->context;
	set->stream = a->stream;
	set->correlation = a->correlation;
	set->memory_kind = LL_CUPTI_MEMORY_DEVICE;
}

static void add_memory(const struct sim_activity *a)
{
	struct ll_cupti_memory *memory = place_for(LL_CUPTI_ACTIVITY_MEMORY2);
	if (!memory)
		return;
	memory->operation = a->kind == SIM_ACTIVITY_FREE ? LL_CUPTI_MEMORY_RELEASE : LL_CUPTI_MEMORY_ALLOCATION;
	memory->memory_kind = LL_CUPTI_MEMORY_DEVICE;
	memory->correlation = a->correlation;
	memory->address = a->address;
	memory->bytes = a->bytes;
	memory->at_ns = stamp(a->start_ns);
	memory->device = a->device;
	memory->context = a->context;
	memory->stream = a->stream;
}

static void observe(const struct sim_activity *activity)
{
	pthread_mutex_lock(&lock);
	if (activity->kind == SIM_ACTIVITY_KERNEL)
		add_kernel(activity);
	else if (activity->kind == SIM_ACTIVITY_COPY)
		add_copy(activity);
	else if (activity->kind == SIM_ACTIVITY_MEMSET)
		add_memset(activity);
	else
		add_memory(activity);
	pthread_mutex_unlock(&lock);
}

ll_cupti_result cuptiGetVersion(uint32_t *ret_version)
{
	*ret_version = (uint32_t)number_in("FAKE_CUPTI_VERSION", 130001);
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiActivityRegisterCallbacks(ll_cupti_request request_fn, ll_cupti_complete complete_fn)
{
	request = request_fn;
	complete = complete_fn;
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiActivityRegisterTimestampCallback(ll_cupti_clock clock_fn)
{
	if (getenv("FAKE_CUPTI_NO_CLOCK"))
		return LL_CUPTI_ERROR_NOT_INITIALIZED;
	clock_of_caller = clock_fn;
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiActivityEnable(uint32_t kind)
{
	void (*sim_observe)(sim_observer) = NULL;
	unsigned long refusal = number_in("FAKE_CUPTI_REFUSE", 0);
	if (refusal)
		return (ll_cupti_result)refusal;
	if (kind >= 64)
		return LL_CUPTI_ERROR_INVALID_KIND;
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *address = driver ? dlsym(driver, "loadline_sim_observe") : NULL;
	memcpy(&sim_observe, &address, sizeof address);
	if (!sim_observe)
		return LL_CUPTI_ERROR_NOT_INITIALIZED;
	enabled |= UINT64_C(1) << kind;
	sim_observe(observe);
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiActivityFlushAll(uint32_t flag)
{
	(void)flag;
	pthread_mutex_lock(&lock);
	deliver();
	pthread_mutex_unlock(&lock);
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiActivityGetNextRecord(uint8_t *records, size_t valid_bytes, struct ll_cupti_activity **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + size_of((*record)->kind) : records;
	if (next >= records + valid_bytes)
		return LL_CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (void *)next;
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiActivityGetNumDroppedRecords(struct ll_cu_context *context, uint32_t stream, size_t *ret_dropped)
{
	(void)context;
	(void)stream;
	*ret_dropped = atomic_exchange(&dropped, 0);
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiGetTimestamp(uint64_t *ret_ns)
{
	*ret_ns = stamp(ll_now_ns());
	return LL_CUPTI_SUCCESS;
}

ll_cupti_result cuptiGetResultString(ll_cupti_result status, const char **ret_text)
{
	*ret_text = status == LL_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
			? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
			: "CUPTI_ERROR";
	return LL_CUPTI_SUCCESS;
}
