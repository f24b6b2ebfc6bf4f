#include "shim/memory/physical.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fork.h"
#include "shim/charge_counter.h"

struct physical {
	ll_cu_mem_handle handle;
	struct ll_device_state *dev;
	uint64_t bytes;
	uint64_t handles, mappings;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock; /* guards what every physical has, and its names in sizes.h; not held in driver calls */
static struct ll_fork_item fork_item;

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
}

static void begin(void)
{
	pthread_mutex_init(&lock, NULL);
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

static void enter(void)
{
	pthread_once(&once, begin);
	pthread_mutex_lock(&lock);
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

static struct physical *find(ll_cu_mem_handle handle)
{
	struct ll_size size;
	return ll_sizes_find(LL_SIZE_PHYSICAL, handle, &size) ? size.thing : NULL;
}

/* Nothing holds it any more: its number is the driver's to give again. The lock is held. */
static bool is_over(struct physical *physical)
{
	struct ll_size size;
	if (physical->handles || physical->mappings)
		return false;
	if (find(physical->handle) == physical)
		ll_sizes_take(LL_SIZE_PHYSICAL, physical->handle, &size);
	return true;
}

static void end(struct physical *physical)
{
	ll_charge_counter_release(physical->dev, physical->bytes);
	free(physical);
}

void ll_physical_add(struct ll_charge *charge, ll_cu_mem_handle handle)
{
	struct ll_device_state *dev = charge->place.dev;
	struct physical *physical = dev ? malloc(sizeof *physical) : NULL;
	if (!physical)
		return;
	*physical = (struct physical){.handle = handle, .dev = dev, .bytes = charge->bytes, .handles = 1};
	struct ll_size size = {.dev = dev, .thing = physical};
	enter();
	bool is_put = ll_sizes_put(LL_SIZE_PHYSICAL, handle, &size, NULL);
	leave();
	if (is_put)
		charge->bytes = 0;
	else
		free(physical);
}

void ll_physical_retain(ll_cu_mem_handle handle)
{
	enter();
	struct physical *physical = find(handle);
	if (physical)
		physical->handles++;
	leave();
}

/* The count goes down before the driver is asked, and up again when it refuses: with the last one the number may be
 * another's as soon as the driver has let it go. */
ll_cu_result ll_physical_release(ll_cu_mem_handle handle, ll_cu_result (*release)(ll_cu_mem_handle))
{
	enter();
	struct physical *physical = find(handle);
	if (physical && physical->handles)
		physical->handles--;
	else
		physical = NULL;
	bool ends = physical && is_over(physical);
	leave();
	ll_cu_result status = release(handle);
	if (!physical || (status == LL_CUDA_SUCCESS && !ends))
		return status;
	if (status == LL_CUDA_SUCCESS) {
		end(physical);
		return status;
	}
	struct ll_size size = {.dev = physical->dev, .thing = physical};
	enter();
	physical->handles++;
	if (ends)
		ll_sizes_put(LL_SIZE_PHYSICAL, handle, &size, NULL);
	leave();
	return status;
}

void ll_physical_mapped(ll_cu_deviceptr address, size_t bytes, ll_cu_mem_handle handle)
{
	enter();
	struct physical *physical = find(handle);
	struct ll_size size = {.bytes = bytes, .thing = physical};
	if (physical)
		physical->mappings += ll_sizes_put(LL_SIZE_MAPPING, address, &size, NULL);
	leave();
}

/* One call may undo several mappings that lie one after the other. Nobody maps there before the driver has undone them,
 * and the memory is not let go of before either; so all of it is done after. */
ll_cu_result ll_physical_unmap(ll_cu_deviceptr address, size_t bytes, ll_cu_result (*unmap)(ll_cu_deviceptr, size_t))
{
	struct ll_size size;
	ll_cu_deviceptr at = address, stop = address + bytes;
	ll_cu_result status = unmap(address, bytes);
	if (status != LL_CUDA_SUCCESS)
		return status;
	while (at < stop) {
		enter();
		bool is_known = ll_sizes_take(LL_SIZE_MAPPING, at, &size);
		struct physical *physical = is_known ? size.thing : NULL;
		if (physical)
			physical->mappings--;
		bool ends = physical && is_over(physical);
		leave();
		if (ends)
			end(physical);
		at += is_known && size.bytes ? size.bytes : LL_FOOTPRINT_BLOCK_BYTES;
	}
	return status;
}
