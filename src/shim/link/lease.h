/*
 * lease.h - the lease of an order. An order that keeps a process from launching is valid for LL_LEASE_NS. While there
 * is such an order, loadlined writes heartbeats. If the heartbeats stop, no loadlined decides, and programs continue
 * without it. On a busy host loadlined may not run for LL_LEASE_NS. So while the connection is open, a process waits
 * LL_LEASE_PATIENCE times as long.
 *
 * Only files of this folder include it.
 */
#ifndef LOADLINE_SHIM_LINK_LEASE_H
#define LOADLINE_SHIM_LINK_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/page.h"
#include "shim/link/connection.h"

enum { LL_LEASE_PATIENCE = 4 };

struct ll_lease {
	uint64_t instance;
	uint64_t since_ns; /* last seen heartbeat, or begin of the wait; 0: nothing is held */
	uint32_t beat;
	uint32_t sequence; /* sequence of the order that holds the process */
	bool is_over;
};

static inline bool ll_lease_is_alive(const struct ll_lease *lease, const struct ll_orders *orders, uint32_t sequence)
{
	return atomic_load_explicit(&orders->instance, memory_order_relaxed) != lease->instance ||
	       atomic_load_explicit(&orders->beat, memory_order_relaxed) != lease->beat || sequence != lease->sequence;
}

/*
 * Call it repeatedly while launches are held. Returns true if the lease is over. This stays true until loadlined writes
 * again, even if nothing is held in between. sequence: the sequence of the order that holds; 0: any order.
 */
static inline bool ll_lease_look(struct ll_lease *lease, const struct ll_orders *orders, uint32_t sequence,
				 bool is_held, uint64_t now_ns)
{
	bool is_alive = ll_lease_is_alive(lease, orders, sequence);
	if (lease->is_over && !is_alive)
		return true;
	lease->is_over = false;
	if (!is_held) {
		lease->since_ns = 0;
	} else if (!lease->since_ns || is_alive) {
		*lease = (struct ll_lease){.instance = atomic_load_explicit(&orders->instance, memory_order_relaxed),
					   .since_ns = now_ns,
					   .beat = atomic_load_explicit(&orders->beat, memory_order_relaxed),
					   .sequence = sequence};
	} else if (now_ns >= lease->since_ns + LL_LEASE_NS) {
		lease->is_over = now_ns >= lease->since_ns + LL_LEASE_PATIENCE * LL_LEASE_NS || !ll_connection_stands();
	}
	return lease->is_over;
}

#endif
