#include "shim/memory/contexts.h"

#include <pthread.h>

#include "base/fork.h"
#include "shim/interpose/real.h"
#include "shim/memory/backing.h"
#include "shim/memory/exported.h"
#include "shim/memory/movable_pool.h"
#include "shim/memory/pools.h"

enum { CARDS = 64, DEFAULT_STACK_BYTES = 1024, DEFAULT_PRINTF_BYTES = 1 << 20, DEFAULT_HEAP_BYTES = 8 << 20 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_fork_item fork_item;
static pthread_mutex_t locks[CARDS];
static _Atomic uint64_t last_owner;
static struct primary {
	struct ll_cu_context *context; /* NULL: there is no primary context, or its handle is not known */
	_Atomic uint64_t owner;
	unsigned retains;
} primaries[CARDS]; /* each is guarded by its card's lock, except owner */

static void init_locks(void)
{
	for (size_t i = 0; i < CARDS; i++)
		pthread_mutex_init(&locks[i], NULL);
}

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	init_locks();
	for (size_t i = 0; i < CARDS; i++) {
		primaries[i].context = NULL;
		primaries[i].owner = 0;
		primaries[i].retains = 0;
	}
}

static void init_once(void)
{
	init_locks();
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

static void lock_card(const struct ll_device_state *dev)
{
	pthread_once(&once, init_once);
	pthread_mutex_lock(&locks[dev->device]);
}

static void unlock_card(const struct ll_device_state *dev)
{
	pthread_mutex_unlock(&locks[dev->device]);
}

uint64_t ll_context_owner(const struct ll_device_state *dev, struct ll_cu_context *context)
{
	struct ll_extent extent;
	if (ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent))
		return extent.owner;
	return atomic_load(&primaries[dev->device].owner);
}

struct ll_cu_context *ll_context_of_owner(uint64_t owner)
{
	struct ll_extent context = {.kind = LL_EXTENT_CONTEXT};
	while (ll_extents_next(&context) && context.kind == LL_EXTENT_CONTEXT) {
		if (context.owner == owner)
			return (struct ll_cu_context *)(uintptr_t)context.address;
	}
	return NULL;
}

struct ll_charge_target ll_charge_target_current(void)
{
	struct ll_cu_context *context;
	struct ll_charge_target target = {.dev = NULL};
	target.refusal = ll_device_state_find(&context, &target.dev);
	target.owner = target.dev ? ll_context_owner(target.dev, context) : 0;
	return target;
}

static ll_cu_result find_card(ll_cu_device device, struct ll_footprint_card *ret_card)
{
	int sms = 0, threads = 0;
	ll_cu_result status =
	    ll_real()->cuDeviceGetAttribute(&sms, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuDeviceGetAttribute(&threads,
							 LL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
	*ret_card = (struct ll_footprint_card){.sm_count = (unsigned)sms, .threads_per_sm = (unsigned)threads};
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

/* Returns the free memory of the card; 0: not known, because no context on the card is current. */
static uint64_t free_bytes_of(ll_cu_device device)
{
	ll_cu_device current;
	size_t free_bytes, total_bytes;
	if (ll_real()->cuCtxGetDevice(&current) != LL_CUDA_SUCCESS || current != device ||
	    ll_real()->cuMemGetInfo_v2(&free_bytes, &total_bytes) != LL_CUDA_SUCCESS)
		return 0;
	return free_bytes;
}

/* Estimates the charge of a new context before the driver's call. */
static ll_cu_result estimate_context(ll_cu_device device, uint64_t *ret_bytes)
{
	struct ll_footprint_card card;
	*ret_bytes = 0;
	if (!ll_device_state_settings()->counts_context)
		return LL_CUDA_SUCCESS;
	ll_cu_result status = find_card(device, &card);
	*ret_bytes = ll_footprint_context(&card, DEFAULT_STACK_BYTES);
	return status;
}

/* Reserves the estimated memory of a new context. The lock is held. */
static void reserve_context(struct ll_context_change *change)
{
	uint64_t bytes;
	change->refusal = estimate_context(change->dev->device, &bytes);
	if (change->refusal)
		return;
	change->free_bytes = free_bytes_of(change->dev->device);
	change->charge = ll_charge_begin((struct ll_charge_target){.dev = change->dev}, bytes);
	change->refusal = change->charge.refusal;
}

static void lock_change(struct ll_context_change *change)
{
	lock_card(change->dev);
	change->is_locked = true;
}

/* Begins a change on the card. is_new: a context will be made. A program may always continue with a context that it
 * already has. */
static struct ll_context_change on_card(ll_cu_device device, bool is_new)
{
	struct ll_context_change change = {.dev = ll_device_state_get(device)};
	ll_exported_watch();
	change.refusal = ll_device_state_answer_of(device);
	if (!change.refusal && is_new && ll_device_state_refuses(device))
		change = (struct ll_context_change){.refusal = LL_CUDA_ERROR_NOT_PERMITTED};
	return change;
}

struct ll_context_change ll_context_begin(ll_cu_device device)
{
	struct ll_context_change change = on_card(device, true);
	if (change.dev) {
		lock_change(&change);
		reserve_context(&change);
	}
	return change;
}

void ll_context_change_end(struct ll_context_change *change)
{
	ll_charge_end(&change->charge);
	ll_device_state_forget_contexts();
	if (!change->dev)
		return;
	if (change->refusal)
		ll_device_state_give_back(change->dev);
	if (change->is_locked)
		unlock_card(change->dev);
}

static void correct_estimate(struct ll_context_change *change)
{
	uint64_t foretold = change->charge.bytes, free_bytes = free_bytes_of(change->dev->device);
	if (!foretold || !change->free_bytes || !free_bytes || free_bytes >= change->free_bytes)
		return;
	uint64_t taken = change->free_bytes - free_bytes;
	if (taken >= foretold / 2 && taken <= foretold + foretold / 2)
		ll_charge_correct(&change->charge, taken);
}

void ll_context_made(struct ll_context_change *change, struct ll_cu_context *context)
{
	if (!change->dev)
		return;
	correct_estimate(change);
	change->charge.target = (struct ll_charge_target){.dev = change->dev, .owner = ++last_owner};
	ll_charge_keep(&change->charge, LL_EXTENT_CONTEXT, ll_extent_handle(context), 0);
}

/* Releases the charges of the allocations of a context that has ended, and of the context itself if its extent is still
 * in the map. */
static void release_owned(struct ll_device_state *dev, const struct ll_cu_context *context, uint64_t owner)
{
	if (context)
		ll_movable_pools_end_context(context);
	ll_backing_free_owned(owner);
	ll_exported_drop_owned(owner);
	uint64_t bytes = ll_extents_remove_owned(owner);
	if (bytes)
		ll_device_state_release(dev, bytes);
}

/* Forgets the launches and the events of a context that ends. The thread uses the relaxed capture mode, because its
 * queries must not make another thread's capture invalid. */
static void forget_launches(const struct ll_device_state *dev, struct ll_cu_context *context)
{
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	ll_movable_pools_forget_context(context);
	ll_pools_forget_streams();
	if (!dev || !dev->flow)
		return;
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	ll_flow_forget_context(dev->flow, context);
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
}

ll_cu_result ll_context_destroy(struct ll_cu_context *context, ll_cu_result (*destroy)(struct ll_cu_context *))
{
	struct ll_extent extent;
	if (!ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent)) {
		ll_cu_result status = destroy(context);
		ll_device_state_forget_contexts();
		return status;
	}
	struct ll_context_change change __attribute__((cleanup(ll_context_change_end))) = {.dev = extent.dev};
	lock_change(&change);
	if (primaries[extent.dev->device].context == context ||
	    !ll_extents_remove(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent))
		return destroy(context);
	forget_launches(extent.dev, context);
	ll_cu_result status = destroy(context);
	ll_charge_freed(&extent, status);
	if (status == LL_CUDA_SUCCESS)
		release_owned(extent.dev, context, extent.owner);
	return status;
}

static bool change_count(struct ll_extent *context, uint64_t more)
{
	context->count += more;
	return true;
}

/* Changes the number of uses after the first. It is stored in the context's extent. */
static void change_uses(struct ll_cu_context *context, int more)
{
	ll_extents_change(LL_EXTENT_CONTEXT, ll_extent_handle(context), change_count, (uint64_t)more, NULL);
}

ll_cu_result ll_context_attach(struct ll_cu_context **ret_context, unsigned flags)
{
	ll_cu_result status = ll_real()->cuCtxAttach(ret_context, flags);
	if (status == LL_CUDA_SUCCESS && ret_context)
		change_uses(*ret_context, 1);
	return status;
}

ll_cu_result ll_context_detach(struct ll_cu_context *context)
{
	struct ll_extent extent;
	bool is_known = ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent);
	if (!is_known || !extent.count)
		return ll_context_destroy(context, ll_real()->cuCtxDetach);
	ll_cu_result status = ll_real()->cuCtxDetach(context);
	if (status == LL_CUDA_SUCCESS)
		change_uses(context, -1);
	return status;
}

/* Returns whether the primary context has ended. If the driver does not report this, the context counts as active and
 * stays charged. */
static bool has_primary_ended(ll_cu_device device)
{
	unsigned flags;
	int is_active = 0;
	ll_cu_result status = ll_real()->cuDevicePrimaryCtxGetState(device, &flags, &is_active);
	return !is_active && !ll_real_has_failed(status);
}

/* Asks whether the primary context is active. *ret_is_active is false if the driver does not have the function. */
static ll_cu_result find_primary_state(ll_cu_device device, bool *ret_is_active)
{
	unsigned flags;
	int is_active = 0;
	ll_cu_result status = ll_real()->cuDevicePrimaryCtxGetState(device, &flags, &is_active);
	*ret_is_active = status == LL_CUDA_SUCCESS && is_active;
	return ll_real_has_failed(status) ? status : LL_CUDA_SUCCESS;
}

static void note_primary(struct ll_context_change *change, struct ll_cu_context *context)
{
	struct primary *primary = &primaries[change->dev->device];
	primary->retains++;
	if (primary->context == context)
		return;
	ll_context_made(change, context);
	primary->context = context;
	atomic_store(&primary->owner, ll_context_owner(change->dev, context));
}

ll_cu_result ll_context_retain(struct ll_cu_context **ret_context, ll_cu_device device)
{
	bool is_active;
	ll_cu_result asked = find_primary_state(device, &is_active);
	if (asked != LL_CUDA_SUCCESS)
		return asked;
	LL_CONTEXT_CHANGE(change, on_card(device, !is_active));
	if (!change.dev)
		return change.refusal ? change.refusal : ll_real()->cuDevicePrimaryCtxRetain(ret_context, device);
	lock_change(&change);
	change.refusal = find_primary_state(device, &is_active);
	if (!change.refusal && !is_active)
		reserve_context(&change);
	if (change.refusal)
		return change.refusal;
	LL_CHARGED_CALL(status, change.dev, ll_real()->cuDevicePrimaryCtxRetain(ret_context, device));
	if (status == LL_CUDA_SUCCESS)
		note_primary(&change, *ret_context);
	return change.refusal = status;
}

/* Call it when the driver has ended the primary context. The lock is held. */
static void end_primary(struct ll_device_state *dev, struct primary *primary)
{
	release_owned(dev, primary->context, atomic_exchange(&primary->owner, 0));
	primary->context = NULL;
	primary->retains = 0;
}

ll_cu_result ll_context_release(ll_cu_device device, ll_cu_result (*release)(ll_cu_device))
{
	struct ll_context_change change
	    __attribute__((cleanup(ll_context_change_end))) = {.dev = ll_device_state_of(device)};
	if (!change.dev)
		return release(device);
	lock_change(&change);
	struct primary *primary = &primaries[device];
	if (primary->context && primary->retains <= 1)
		forget_launches(change.dev, primary->context);
	ll_cu_result status = release(device);
	if (status != LL_CUDA_SUCCESS)
		return status;
	if (primary->retains)
		primary->retains--;
	if (has_primary_ended(device))
		end_primary(change.dev, primary);
	return status;
}

/* Finds the handle of the primary context by retaining it for a moment. The lock is held. A green context keeps the
 * primary context active. */
static void find_primary(struct ll_context_change *change)
{
	struct ll_cu_context *context;
	if (ll_real()->cuDevicePrimaryCtxRetain(&context, change->dev->device) != LL_CUDA_SUCCESS)
		return;
	note_primary(change, context);
	ll_real()->cuDevicePrimaryCtxRelease_v2(change->dev->device);
}

/* Reserves the memory of the green context. If the primary context is not active, also reserves its memory. */
ll_cu_result ll_context_create_green(struct ll_cu_green_context **ret_green, struct ll_cu_resource_desc *resources,
				     ll_cu_device device, unsigned flags)
{
	LL_CONTEXT_CHANGE(change, on_card(device, true));
	if (!change.dev)
		return change.refusal ? change.refusal
				      : ll_real()->cuGreenCtxCreate(ret_green, resources, device, flags);
	bool is_active;
	lock_change(&change);
	change.refusal = find_primary_state(device, &is_active);
	if (!change.refusal && !is_active)
		reserve_context(&change);
	if (change.refusal)
		return change.refusal;
	LL_CHARGE(own, (struct ll_charge_target){.dev = change.dev},
		  ll_device_state_settings()->counts_context ? LL_FOOTPRINT_GREEN_CONTEXT_BYTES : 0);
	if (own.refusal)
		return change.refusal = own.refusal;
	LL_CHARGED_CALL(status, change.dev, ll_real()->cuGreenCtxCreate(ret_green, resources, device, flags));
	if (status != LL_CUDA_SUCCESS)
		return change.refusal = status;
	find_primary(&change);
	own.target.owner = atomic_load(&primaries[device].owner);
	ll_charge_keep(&own, LL_EXTENT_GREEN, ll_extent_handle(*ret_green), 0);
	return status;
}

/* The library stores launches in a green context under the handle that cuCtxFromGreenCtx returns. */
static void forget_green_launches(const struct ll_device_state *dev, struct ll_cu_green_context *green)
{
	struct ll_cu_context *context;
	if (ll_real()->cuCtxFromGreenCtx(&context, green) == LL_CUDA_SUCCESS)
		forget_launches(dev, context);
}

ll_cu_result ll_context_destroy_green(struct ll_cu_green_context *green)
{
	struct ll_extent extent;
	if (!ll_extents_remove(LL_EXTENT_GREEN, ll_extent_handle(green), &extent))
		return ll_real()->cuGreenCtxDestroy(green);
	struct ll_context_change change __attribute__((cleanup(ll_context_change_end))) = {.dev = extent.dev};
	lock_change(&change);
	struct primary *primary = &primaries[extent.dev->device];
	forget_green_launches(extent.dev, green);
	if (primary->context && primary->retains <= 1)
		forget_launches(extent.dev, primary->context);
	ll_cu_result status = ll_real()->cuGreenCtxDestroy(green);
	ll_charge_freed(&extent, status);
	if (status == LL_CUDA_SUCCESS && primary->retains)
		primary->retains--;
	if (status == LL_CUDA_SUCCESS && has_primary_ended(extent.dev->device))
		end_primary(extent.dev, primary);
	return status;
}

/* A reset ends all allocations of the primary context. It also ends the context, unless the driver makes a new one at
 * once. */
ll_cu_result ll_context_reset(ll_cu_device device, ll_cu_result (*reset)(ll_cu_device))
{
	struct ll_context_change change
	    __attribute__((cleanup(ll_context_change_end))) = {.dev = ll_device_state_of(device)};
	if (!change.dev)
		return reset(device);
	lock_change(&change);
	struct primary *primary = &primaries[device];
	struct ll_extent extent;
	if (primary->context)
		forget_launches(change.dev, primary->context);
	ll_cu_result status = reset(device);
	if (status != LL_CUDA_SUCCESS)
		return status;
	if (has_primary_ended(device)) {
		end_primary(change.dev, primary);
	} else if (primary->context &&
		   ll_extents_remove(LL_EXTENT_CONTEXT, ll_extent_handle(primary->context), &extent)) {
		release_owned(change.dev, primary->context, extent.owner);
		ll_charge_put(&extent);
	}
	return status;
}

/* Gives the memory that a limit takes on the card, in addition to the memory that every context has. */
static ll_cu_result find_limit_bytes(const struct ll_device_state *dev, enum ll_cu_limit limit, uint64_t value,
				     uint64_t *ret_bytes)
{
	struct ll_footprint_card card;
	ll_cu_result status = LL_CUDA_SUCCESS;
	*ret_bytes = 0;
	switch (limit) {
	case LL_CU_LIMIT_STACK_SIZE:
		status = find_card(dev->device, &card);
		*ret_bytes = ll_footprint_stacks(&card, value);
		break;
	case LL_CU_LIMIT_PRINTF_FIFO_SIZE:
		if (value > DEFAULT_PRINTF_BYTES)
			*ret_bytes = ll_footprint_plain(value - DEFAULT_PRINTF_BYTES);
		break;
	case LL_CU_LIMIT_MALLOC_HEAP_SIZE:
		if (value > DEFAULT_HEAP_BYTES)
			*ret_bytes = ll_footprint_plain(value - DEFAULT_HEAP_BYTES);
		break;
	default:
		break;
	}
	return status;
}

/* The same for the limit's present value. The driver refuses limits that it does not know; these take no memory. */
static ll_cu_result find_limit_bytes_now(const struct ll_device_state *dev, enum ll_cu_limit limit, uint64_t *ret_bytes)
{
	size_t value = 0;
	ll_cu_result status = ll_real()->cuCtxGetLimit(&value, limit);
	*ret_bytes = 0;
	if (status == LL_CUDA_SUCCESS)
		return find_limit_bytes(dev, limit, value, ret_bytes);
	return status == LL_CUDA_ERROR_UNSUPPORTED_LIMIT || !ll_real_has_failed(status) ? LL_CUDA_SUCCESS : status;
}

static bool charge_more(struct ll_extent *context, uint64_t bytes)
{
	context->charged_bytes += bytes;
	return true;
}

static bool charge_less(struct ll_extent *context, uint64_t bytes)
{
	context->charged_bytes -= bytes < context->charged_bytes ? bytes : context->charged_bytes;
	return true;
}

/* Changes the context's charge when one of its limits changes. before, after: bytes of the limit. */
static void change_context(struct ll_context_change *change, struct ll_cu_context *context, uint64_t before,
			   uint64_t after)
{
	struct ll_extent extent;
	uint64_t handle = ll_extent_handle(context), less = before > after ? before - after : 0;
	ll_charge_correct(&change->charge, after > before ? after - before : 0);
	if (less && ll_extents_change(LL_EXTENT_CONTEXT, handle, charge_less, less, &extent))
		ll_device_state_release(extent.dev, less < extent.charged_bytes ? less : extent.charged_bytes);
	else if (!less && ll_extents_change(LL_EXTENT_CONTEXT, handle, charge_more, change->charge.bytes, NULL))
		change->charge.bytes = 0;
}

ll_cu_result ll_context_set_limit(enum ll_cu_limit limit, size_t value)
{
	struct ll_cu_context *context;
	struct ll_device_state *dev;
	uint64_t before, after, now;
	ll_cu_result asked = ll_device_state_find(&context, &dev);
	if (asked != LL_CUDA_SUCCESS)
		return asked;
	if (!dev || !ll_device_state_settings()->counts_context)
		return ll_real()->cuCtxSetLimit(limit, value);
	struct ll_context_change change __attribute__((cleanup(ll_context_change_end))) = {.dev = dev};
	lock_change(&change);
	/* A green context's limits are those of the primary context. */
	if (!ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), NULL))
		context = primaries[dev->device].context;
	if (!context)
		return ll_real()->cuCtxSetLimit(limit, value);
	asked = find_limit_bytes_now(dev, limit, &before);
	if (asked == LL_CUDA_SUCCESS)
		asked = find_limit_bytes(dev, limit, value, &after);
	if (asked != LL_CUDA_SUCCESS)
		return asked;
	change.charge = ll_charge_begin((struct ll_charge_target){.dev = dev}, after > before ? after - before : 0);
	if (change.charge.refusal)
		return change.charge.refusal;
	LL_CHARGED_CALL(status, dev, ll_real()->cuCtxSetLimit(limit, value));
	if (status == LL_CUDA_SUCCESS)
		change_context(&change, context, before,
			       find_limit_bytes_now(dev, limit, &now) == LL_CUDA_SUCCESS ? now : after);
	return status;
}
