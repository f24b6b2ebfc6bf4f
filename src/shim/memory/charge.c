#include "shim/memory/memory.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/guest.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/memory/pools.h"

#define PAUSE_NS (2 * LL_NS_PER_MS)

struct ll_charge_target ll_charge_target_of_device(ll_cu_device device)
{
	struct ll_charge_target target = {.dev = ll_device_state_get(device)};
	target.refusal = ll_device_state_answer_of(device);
	if (!target.dev && !target.refusal && ll_device_state_refuses(device))
		target.refusal = LL_CUDA_ERROR_OUT_OF_MEMORY;
	return target;
}

bool ll_exported_must_settle(const struct ll_device_state *dev)
{
	return ll_port_death_ns(dev->port) != atomic_load_explicit(&dev->settled_ns, memory_order_relaxed);
}

enum { TRIES = 3 };

/* Reserves bytes after dead processes are settled. The claim of a dead process may have been cleared just before. If
 * that process carried memory that others hold, another process must carry this charge first. */
static int reserve_after_the_dead(struct ll_device_state *dev, uint64_t bytes)
{
	int rc = 0;
	for (int i = 0; i < TRIES; i++) {
		if (ll_exported_must_settle(dev))
			ll_exported_settle(dev);
		rc = ll_device_state_reserve(dev, bytes);
		if (rc < 0 || !ll_exported_must_settle(dev))
			return rc;
		if (i + 1 < TRIES)
			ll_device_state_release(dev, bytes);
	}
	return rc;
}

int ll_charge_reserve(struct ll_device_state *dev, uint64_t bytes)
{
	int rc = reserve_after_the_dead(dev, bytes);
	return rc == -ENOMEM && ll_exported_settle(dev) ? reserve_after_the_dead(dev, bytes) : rc;
}

struct ll_charge ll_charge_begin(struct ll_charge_target target, uint64_t bytes)
{
	struct ll_charge charge = {.target = target, .refusal = target.refusal};
	if (!target.dev)
		return charge;
	int rc = ll_charge_reserve(target.dev, bytes);
	if (rc == -ENOMEM && ll_device_state_give_up_reserve(target.dev))
		rc = ll_charge_reserve(target.dev, bytes);
	if (rc == -ENOMEM && ll_device_state_request_siblings(target.dev, bytes))
		rc = ll_charge_reserve(target.dev, bytes);
	if (rc == -ENOMEM)
		charge.refusal = LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (rc == 0)
		charge.bytes = bytes;
	else
		charge.target.dev = NULL;
	return charge;
}

bool ll_charge_waits(struct ll_device_state *dev, uint64_t *since_ns)
{
	uint64_t now_ns = ll_now_ns();
	bool is_first = !*since_ns;
	*since_ns = is_first ? now_ns : *since_ns;
	if (!dev || now_ns - *since_ns >= LL_NS_PER_S)
		return false;
	/* The driver gives up the reserve of its own pools without a request. */
	if (is_first && ll_device_state_settings()->is_evictable && ll_device_state_give_up_reserve(dev))
		return true;
	uint64_t death_ns = ll_port_death_ns(dev->port);
	if (!death_ns || ll_now_ns() - death_ns >= LL_NS_PER_S)
		death_ns = ll_port_sweep(dev->port);
	if (!death_ns || ll_now_ns() - death_ns >= LL_NS_PER_S)
		return false;
	ll_sleep_until_ns(now_ns + PAUSE_NS);
	return true;
}

void ll_charge_end(struct ll_charge *charge)
{
	if (charge->target.dev && charge->bytes)
		ll_device_state_release(charge->target.dev, charge->bytes);
}

void ll_charge_correct(struct ll_charge *charge, uint64_t bytes)
{
	if (!charge->target.dev)
		return;
	if (bytes > charge->bytes)
		ll_device_state_charge(charge->target.dev, bytes - charge->bytes);
	else
		ll_device_state_release(charge->target.dev, charge->bytes - bytes);
	charge->bytes = bytes;
}

void ll_charge_release(const struct ll_extent *extent)
{
	if (extent->dev && extent->charged_bytes)
		ll_device_state_release(extent->dev, extent->charged_bytes);
	if (extent->dev && extent->shared)
		ll_exported_drop(extent->shared);
}

bool ll_charge_put(const struct ll_extent *extent)
{
	struct ll_extent stale;
	int rc;
	while ((rc = ll_extents_put(extent, &stale)) == -EEXIST)
		ll_charge_release(&stale);
	return rc == 0;
}

void ll_charge_keep(struct ll_charge *charge, enum ll_extent_kind kind, uint64_t address, uint64_t bytes,
		    uint32_t backed_serial)
{
	struct ll_extent extent = {.kind = kind,
				   .is_backed = backed_serial != 0,
				   .serial = backed_serial,
				   .address = address,
				   .bytes = bytes,
				   .charged_bytes = charge->bytes,
				   .dev = charge->target.dev,
				   .owner = charge->target.owner};
	if (extent.dev && ll_charge_put(&extent))
		charge->bytes = 0;
}

void ll_charge_freed(const struct ll_extent *extent, ll_cu_result status)
{
	/* The driver still has the allocation, so no other one can have its address. */
	if (status == LL_CUDA_SUCCESS || !ll_charge_put(extent))
		ll_charge_release(extent);
}

/* ---- contexts ---- */

enum { CARDS = 64, DEFAULT_STACK_BYTES = 1024, DEFAULT_PRINTF_BYTES = 1 << 20, DEFAULT_HEAP_BYTES = 8 << 20 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
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
	static struct ll_fork_item fork_item = {.in_child = forget_in_child};
	init_locks();
	ll_fork_add(&fork_item);
}

/* Returns the context's number; 0: the library does not know the context. */
static uint64_t context_owner(const struct ll_device_state *dev, struct ll_cu_context *context)
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
	target.owner = target.dev ? context_owner(target.dev, context) : 0;
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

/* Reserves the estimated memory of a new context. The lock is held. */
static void reserve_context(struct ll_context_change *change)
{
	struct ll_footprint_card card;
	uint64_t bytes = 0;
	if (ll_device_state_settings()->counts_context) {
		change->refusal = find_card(change->dev->device, &card);
		bytes = ll_footprint_context(&card, DEFAULT_STACK_BYTES);
	}
	if (change->refusal)
		return;
	change->free_bytes = free_bytes_of(change->dev->device);
	change->charge = ll_charge_begin((struct ll_charge_target){.dev = change->dev}, bytes);
	change->refusal = change->charge.refusal;
}

static void lock_change(struct ll_context_change *change)
{
	pthread_once(&once, init_once);
	pthread_mutex_lock(&locks[change->dev->device]);
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
		pthread_mutex_unlock(&locks[change->dev->device]);
}

void ll_context_made(struct ll_context_change *change, struct ll_cu_context *context)
{
	if (!change->dev)
		return;
	uint64_t foretold = change->charge.bytes, free_bytes = free_bytes_of(change->dev->device);
	if (foretold && change->free_bytes && free_bytes && free_bytes < change->free_bytes) {
		uint64_t taken = change->free_bytes - free_bytes;
		if (taken >= foretold / 2 && taken <= foretold + foretold / 2)
			ll_charge_correct(&change->charge, taken);
	}
	change->charge.target = (struct ll_charge_target){.dev = change->dev, .owner = ++last_owner};
	ll_charge_keep(&change->charge, LL_EXTENT_CONTEXT, ll_extent_handle(context), 0, 0);
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
	ll_movable_pools_forget_context(context);
	ll_pools_forget_streams();
	if (!dev || !dev->flow)
		return;
	enum ll_cu_capture_mode mode = ll_stream_exchange_capture_mode(LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	ll_flow_forget_context(dev->flow, context);
	ll_stream_exchange_capture_mode(mode);
}

ll_cu_result ll_context_destroy(struct ll_cu_context *context, ll_cu_result (*destroy)(struct ll_cu_context *))
{
	struct ll_extent extent;
	if (!ll_extents_find(LL_EXTENT_CONTEXT, ll_extent_handle(context), &extent)) {
		ll_cu_result status = destroy(context);
		ll_device_state_forget_contexts();
		return status;
	}
	LL_CONTEXT_CHANGE(change, {.dev = extent.dev});
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

/* Changes the number of uses after the first. */
static bool change_count(struct ll_extent *context, uint64_t more)
{
	context->count += more;
	return true;
}

ll_cu_result ll_context_attach(struct ll_cu_context **ret_context, unsigned flags)
{
	ll_cu_result status = ll_real()->cuCtxAttach(ret_context, flags);
	if (status == LL_CUDA_SUCCESS && ret_context)
		ll_extents_change(LL_EXTENT_CONTEXT, ll_extent_handle(*ret_context), change_count, 1, NULL);
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
		ll_extents_change(LL_EXTENT_CONTEXT, ll_extent_handle(context), change_count, (uint64_t)-1, NULL);
	return status;
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
	atomic_store(&primary->owner, context_owner(change->dev, context));
}

ll_cu_result ll_context_retain(struct ll_cu_context **ret_context, ll_cu_device device, ll_context_wait *waits)
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
	unsigned grants = 0;
	LL_CHARGED_CALL(status, change.dev, ll_real()->cuDevicePrimaryCtxRetain(ret_context, device));
	while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && waits(&change, &grants))
		status = ll_real()->cuDevicePrimaryCtxRetain(ret_context, device);
	if (status == LL_CUDA_SUCCESS)
		note_primary(&change, *ret_context);
	return change.refusal = status;
}

/* Call it when the driver may have ended the primary context; returns whether it has. If the driver does not report
 * this, the context counts as active and stays charged. The lock is held. */
static bool end_primary(struct ll_device_state *dev, struct primary *primary)
{
	bool is_active;
	if (find_primary_state(dev->device, &is_active) != LL_CUDA_SUCCESS || is_active)
		return false;
	release_owned(dev, primary->context, atomic_exchange(&primary->owner, 0));
	primary->context = NULL;
	primary->retains = 0;
	return true;
}

/* Call it before a release by which the driver may end the primary context. The lock is held. */
static void begin_release(struct ll_device_state *dev, const struct primary *primary)
{
	if (primary->context && primary->retains <= 1)
		forget_launches(dev, primary->context);
}

/* The driver has released it. The lock is held. */
static void end_release(struct ll_device_state *dev, struct primary *primary)
{
	if (primary->retains)
		primary->retains--;
	end_primary(dev, primary);
}

ll_cu_result ll_context_release(ll_cu_device device, ll_cu_result (*release)(ll_cu_device))
{
	LL_CONTEXT_CHANGE(change, {.dev = ll_device_state_of(device)});
	if (!change.dev)
		return release(device);
	lock_change(&change);
	struct primary *primary = &primaries[device];
	begin_release(change.dev, primary);
	ll_cu_result status = release(device);
	if (status == LL_CUDA_SUCCESS)
		end_release(change.dev, primary);
	return status;
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
	/* Retains the primary context for a moment, to find its handle. The green context keeps it active. */
	struct ll_cu_context *primary;
	if (ll_real()->cuDevicePrimaryCtxRetain(&primary, device) == LL_CUDA_SUCCESS) {
		note_primary(&change, primary);
		ll_real()->cuDevicePrimaryCtxRelease_v2(device);
	}
	own.target.owner = atomic_load(&primaries[device].owner);
	ll_charge_keep(&own, LL_EXTENT_GREEN, ll_extent_handle(*ret_green), 0, 0);
	return status;
}

ll_cu_result ll_context_destroy_green(struct ll_cu_green_context *green)
{
	struct ll_extent extent;
	if (!ll_extents_remove(LL_EXTENT_GREEN, ll_extent_handle(green), &extent))
		return ll_real()->cuGreenCtxDestroy(green);
	LL_CONTEXT_CHANGE(change, {.dev = extent.dev});
	lock_change(&change);
	struct primary *primary = &primaries[extent.dev->device];
	/* The library stores launches in a green context under the handle that cuCtxFromGreenCtx returns. */
	struct ll_cu_context *context;
	if (ll_real()->cuCtxFromGreenCtx(&context, green) == LL_CUDA_SUCCESS)
		forget_launches(extent.dev, context);
	begin_release(extent.dev, primary);
	ll_cu_result status = ll_real()->cuGreenCtxDestroy(green);
	ll_charge_freed(&extent, status);
	if (status == LL_CUDA_SUCCESS)
		end_release(extent.dev, primary);
	return status;
}

/* A reset ends all allocations of the primary context. It also ends the context, unless the driver makes a new one at
 * once. */
ll_cu_result ll_context_reset(ll_cu_device device, ll_cu_result (*reset)(ll_cu_device))
{
	LL_CONTEXT_CHANGE(change, {.dev = ll_device_state_of(device)});
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
	if (!end_primary(change.dev, primary) && primary->context &&
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

/* Changes the charge of a context, not below 0. */
static bool change_charge(struct ll_extent *context, uint64_t more)
{
	uint64_t less = -more;
	if ((int64_t)more >= 0)
		context->charged_bytes += more;
	else
		context->charged_bytes -= less < context->charged_bytes ? less : context->charged_bytes;
	return true;
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
	LL_CONTEXT_CHANGE(change, {.dev = dev});
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
	if (status != LL_CUDA_SUCCESS)
		return status;
	if (find_limit_bytes_now(dev, limit, &now) == LL_CUDA_SUCCESS)
		after = now;
	struct ll_extent extent;
	uint64_t handle = ll_extent_handle(context), less = before > after ? before - after : 0;
	ll_charge_correct(&change.charge, after > before ? after - before : 0);
	uint64_t more = less ? -less : change.charge.bytes;
	bool is_changed = ll_extents_change(LL_EXTENT_CONTEXT, handle, change_charge, more, &extent);
	if (is_changed && less)
		ll_device_state_release(extent.dev, less < extent.charged_bytes ? less : extent.charged_bytes);
	else if (is_changed)
		change.charge.bytes = 0;
	return status;
}
