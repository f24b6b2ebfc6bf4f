#include "shim/pool_reserve.h"

#include "base/clock.h"
#include "ledger/port.h"
#include "shim/device_state.h"

#define PAUSE_NS (200 * LL_NS_PER_US)
#define PATIENCE_NS (50 * LL_NS_PER_MS)

bool ll_pool_reserve_of_siblings(struct ll_device_state *dev)
{
	uint64_t now_ns = ll_now_ns(), give_up_ns = now_ns + PATIENCE_NS;
	if (!ll_port_ask_reserves(dev->claim, now_ns))
		return false;
	while (ll_port_unanswered(dev->claim) && now_ns < give_up_ns) {
		ll_sleep_until_ns(now_ns + PAUSE_NS);
		now_ns = ll_now_ns();
	}
	return true;
}
