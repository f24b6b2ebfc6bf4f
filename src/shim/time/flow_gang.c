#include "base/clock.h"
#include "ledger/port.h"
#include "shim/time/flow_state.h"

/* Work of another card that goes on for so long after ours was seen to have ended waits for ours: else they end
 * together. */
#define AWAITED_NS (50 * LL_NS_PER_US)

void ll_flow_follow(struct ll_flow *flow, const struct ll_ledger *first, uint64_t tenant_id)
{
	pthread_mutex_lock(&flow->lock.mutex);
	flow->tenant_id = tenant_id;
	flow->first = first;
	pthread_mutex_unlock(&flow->lock.mutex);
}

/* While the tenant is about to give away its turn on its first card, and while it is the turn of another there that
 * works here too, nothing more is launched here, but what another card waits for. */
static void obey_first_card(struct ll_flow *flow)
{
	if (!ll_gang_closes(&flow->gang))
		return;
	flow->look.may_launch = flow->look.is_alone = false;
	flow->look.awaited = flow->gang.work;
}

/* So many launches may go each time the card has none of ours left, in turn or not: what another card has begun spins
 * until then. */
static void note_awaited(struct ll_flow *flow, bool is_idle, uint64_t now_ns)
{
	const struct ll_gang_work *work = &flow->look.awaited;
	if (flow->look.may_launch || !ll_port_is_fresh(work->seen_ns, now_ns))
		flow->awaited = 0;
	else if (is_idle && work->seen_ns > flow->idle_since_ns + AWAITED_NS)
		flow->awaited = work->launches;
}

void ll_flow_look(struct ll_flow *flow, uint64_t now_ns, bool is_idle)
{
	if (flow->is_wanting && flow->first)
		ll_port_look_first(flow->claim, flow->first, flow->tenant_id, flow->turn.queued_launches, now_ns,
				   &flow->gang);
	else
		flow->gang = (struct ll_gang){0};
	flow->turn.is_led = flow->gang.is_led;
	ll_port_look(flow->claim, &flow->turn, now_ns, flow->queued.ns, &flow->look);
	obey_first_card(flow);
	note_awaited(flow, is_idle, now_ns);
}

bool ll_flow_passes_awaited(struct ll_flow *flow)
{
	if (!flow->awaited || flow->is_in_debt)
		return false;
	flow->awaited--;
	return true;
}
