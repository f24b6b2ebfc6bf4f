/* Settles exported memory (exported.h) that dead processes carried, or that no process holds any more. */
#include <errno.h>

#include "base/scope.h"
#include "shim/link/port.h"
#include "shim/memory/exported.h"
#include "shim/memory/exported_holding.h"
#include "shim/memory/lent.h"
#include "shim/memory/pools.h"

bool ll_exported_must_settle(const struct ll_device_state *dev)
{
	return ll_port_death_ns(dev->port) != atomic_load_explicit(&dev->settled_ns, memory_order_relaxed);
}

/* Makes this process carry memory whose carrier is dead and which the tenant still holds. */
static void adopt_memory(struct ll_device_state *dev, struct ll_exported_table *table, uint64_t id)
{
	uint64_t bytes = ll_holding_find_size(table, id);
	struct ll_holding *holding = ll_holding_find_or_add(dev, id);
	if (!holding)
		return;
	if (bytes > holding->charged_bytes) {
		ll_device_state_charge(dev, bytes - holding->charged_bytes);
		holding->charged_bytes = bytes;
	}
	holding->bytes = bytes;
	holding->is_carried = true;
	ll_holding_write(table, holding);
}

/* Frees the rows of dead processes of all tenants. If another tenant still holds the memory, its processes free the
 * row, because the row has the memory's size. */
static void clear_dead(struct ll_device_state *dev, struct ll_exported_table *table)
{
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind != LL_EXPORTED_HOLDER || ll_holding_is_alive(dev, row))
			continue;
		uint64_t id = row->id;
		bool is_ours = row->tenant == ll_holding_tenant(),
		     is_held = ll_holding_has_others(dev, table, row->tenant, id, NULL);
		if (is_ours && is_held && !ll_holding_find_carrier(dev, table, id, NULL))
			adopt_memory(dev, table, id);
		if (is_held && !is_ours)
			continue;
		ll_exported_table_free(table, row);
		ll_holding_free_rest(table, id);
	}
}

/* Does ll_exported_settle. The lock is held. */
static bool settle_dead(struct ll_device_state *dev)
{
	struct ll_exported_table table;
	uint64_t death_ns = ll_port_death_ns(dev->port);
	if (death_ns == dev->settled_ns && !ll_holding_any_unused(dev) && !ll_holding_must_follow(dev))
		return false;
	int rc = ll_holding_open_table(dev, false, &table);
	if (rc == -ENOENT) { /* there is no table, so no other process knows of exported memory */
		dev->settled_ns = death_ns;
		return ll_holding_let_go_unused(dev, NULL);
	}
	if (rc < 0)
		return false;
	clear_dead(dev, &table);
	bool is_less = ll_holding_let_go_unused(dev, &table);
	dev->settled_ns = death_ns;
	ll_exported_table_close(&table);
	return is_less;
}

bool ll_exported_settle(struct ll_device_state *dev)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	bool is_less = settle_dead(dev);
	errno = code;
	return is_less;
}

static void tend_exported(struct ll_device_state *dev)
{
	if (ll_holding_is_any || ll_exported_must_settle(dev))
		ll_exported_settle(dev);
	if (ll_lent_is_any)
		ll_pool_true_up_all(dev);
}

void ll_exported_watch(void)
{
	ll_device_state_set_tend(tend_exported);
}
