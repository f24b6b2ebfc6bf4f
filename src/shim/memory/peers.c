#include "shim/memory/peers.h"

#include <pthread.h>

#include "base/scope.h"
#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/memory/backing.h"

enum { CARDS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t pairs[CARDS][CARDS]; /* number of pairs; indices: the card that has the memory, the card that uses it */

static bool is_card(ll_cu_device device)
{
	return device >= 0 && device < CARDS;
}

/* Finds the cards of context `peer` and of the current context. *ret_of is NULL if no allocation is backed, or if both
 * contexts are on one card. Returns the driver's error if the driver does not report a card. */
static ll_cu_result find_pair(struct ll_cu_context *peer, struct ll_device_state **ret_of, ll_cu_device *ret_user)
{
	struct ll_cu_context *popped;
	ll_cu_device of;
	const struct ll_run_settings *settings = ll_device_state_settings();
	*ret_of = NULL;
	if (!settings || !settings->is_evictable)
		return LL_CUDA_SUCCESS;
	ll_cu_result status = ll_real()->cuCtxGetDevice(ret_user);
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuCtxPushCurrent_v2(peer);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuCtxGetDevice(&of);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	if (status == LL_CUDA_SUCCESS && of != *ret_user && is_card(of) && is_card(*ret_user))
		*ret_of = ll_device_state_of(of);
	return status;
}

static ll_cu_result add_pair(struct ll_device_state *of, ll_cu_device user)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	ll_cu_result status = pairs[of->device][user] ? LL_CUDA_SUCCESS : ll_backing_set_peer(of, user, true);
	if (status == LL_CUDA_SUCCESS)
		pairs[of->device][user]++;
	else
		ll_backing_set_peer(of, user, false);
	return status;
}

static void remove_pair(struct ll_device_state *of, ll_cu_device user)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	if (pairs[of->device][user] && --pairs[of->device][user] == 0)
		ll_backing_set_peer(of, user, false);
}

ll_cu_result ll_peers_enabled(struct ll_cu_context *peer)
{
	struct ll_device_state *of;
	ll_cu_device user;
	ll_cu_result status = find_pair(peer, &of, &user);
	if (status == LL_CUDA_SUCCESS && of)
		status = add_pair(of, user);
	if (status != LL_CUDA_SUCCESS)
		ll_real()->cuCtxDisablePeerAccess(peer);
	return status;
}

void ll_peers_disabled(struct ll_cu_context *peer)
{
	struct ll_device_state *of;
	ll_cu_device user;
	if (find_pair(peer, &of, &user) == LL_CUDA_SUCCESS && of)
		remove_pair(of, user);
}

ll_cu_result ll_peers_of_pool(struct ll_device_state *of, ll_cu_device user, bool is_allowed)
{
	if (is_allowed)
		return add_pair(of, user);
	remove_pair(of, user);
	return LL_CUDA_SUCCESS;
}
