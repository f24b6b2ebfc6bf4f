#include "shim/residency/plain.h"

#include "base/clock.h"
#include "base/scope.h"
#include "shim/interpose/real.h"
#include "shim/memory/backing.h"
#include "shim/memory/contexts.h"
#include "shim/residency/link.h"
#include "shim/time/driver_calls.h"
#include "shim/time/flow.h"

/* Another program evicts a batch in 10 ms. If no memory has become free for half a second, none will. */
#define CHUNK_PAUSE_NS (2 * LL_NS_PER_MS)
#define CHUNK_NS (500 * LL_NS_PER_MS)

/* The program itself may be evicted meanwhile. */
static bool wait_for_chunk(struct ll_device_state *dev, uint64_t since_ns)
{
	LL_SCOPE_NO_CANCEL;
	uint64_t now_ns = ll_now_ns();
	if (now_ns - since_ns >= CHUNK_NS || !ll_residency_is_served(dev))
		return false;
	ll_driver_call_step_out();
	ll_sleep_until_ns(now_ns + CHUNK_PAUSE_NS);
	ll_driver_call_step_in();
	return true;
}

ll_cu_result ll_plain_make(struct ll_device_state *dev, size_t bytes, ll_cu_deviceptr *ret_address,
			   uint32_t *ret_serial)
{
	bool waits_by_chunk = ll_backing_has_chunks(bytes);
	unsigned grants = 0;
	enum ll_move_room room = LL_MOVE_ROOM_THERE;
	ll_cu_result status;
	do {
		ll_backing_wait *wait = room == LL_MOVE_ROOM_COMING ? wait_for_chunk : NULL;
		status = ll_backing_allocate(dev, bytes, wait, ret_address, ret_serial);
	} while (status == LL_CUDA_ERROR_OUT_OF_MEMORY &&
		 (ll_device_state_give_up_reserve(dev) ||
		  (room = ll_residency_make_room(dev, bytes, waits_by_chunk, &grants))));
	return status;
}

ll_cu_result ll_plain_allocate(ll_cu_deviceptr *ret_address, size_t bytes)
{
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_charge_target_current(), ll_footprint_plain(bytes));
	if (charge.refusal)
		return charge.refusal;
	struct ll_device_state *dev = charge.target.dev;
	uint32_t serial = 0;
	bool is_backed = ret_address && bytes && ll_residency_backs(dev);
	LL_CHARGED_CALL(status, dev,
			is_backed ? ll_plain_make(dev, bytes, ret_address, &serial)
				  : ll_real()->cuMemAlloc_v2(ret_address, bytes));
	if (status != LL_CUDA_SUCCESS || !ret_address)
		return status;
	if (is_backed)
		ll_charge_keep_backed(&charge, *ret_address, bytes, serial);
	else
		ll_charge_keep(&charge, LL_EXTENT_PLAIN, *ret_address, bytes);
	return LL_CUDA_SUCCESS;
}

static void end_wait(struct ll_flow **flow)
{
	ll_flow_end_wait(*flow);
}

/*
 * Waits for the current context's work as the driver's cuMemFree does. While a stream is being captured the wait for a
 * context would spoil the capture, and cuMemFree does not, unless the capture's mode forbids it. So the driver then
 * frees a few bytes of its own.
 */
static ll_cu_result wait_as_free_does(struct ll_flow *flow)
{
	ll_cu_deviceptr own;
	if (ll_flow_begin_wait(flow)) {
		/* Also if the thread is cancelled meanwhile. */
		struct ll_flow *entered __attribute__((cleanup(end_wait), unused)) = flow;
		return ll_real()->cuCtxSynchronize();
	}
	ll_cu_result status = ll_real()->cuMemAlloc_v2(&own, 1);
	return status == LL_CUDA_SUCCESS ? ll_real()->cuMemFree_v2(own) : status;
}

/* The context need not be the current one. */
ll_cu_result ll_plain_wait(const struct ll_extent *plain)
{
	struct ll_cu_context *current = NULL, *popped, *context = ll_context_of_owner(plain->owner);
	ll_cu_result status = ll_real()->cuCtxGetCurrent(&current);
	if (status != LL_CUDA_SUCCESS || !current || !context || context == current)
		return wait_as_free_does(plain->dev->flow);
	status = ll_real()->cuCtxPushCurrent_v2(context);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = wait_as_free_does(plain->dev->flow);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status;
}

ll_cu_result ll_plain_free(const struct ll_extent *plain)
{
	ll_cu_result status = ll_plain_wait(plain);
	if (status == LL_CUDA_SUCCESS)
		ll_backing_free(plain);
	return status;
}
