#include "shim/memory/exported_holding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "shim/link/port.h"
#include "shim/memory/descriptor.h"

enum { BUCKETS = 256 };

pthread_mutex_t ll_holding_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ll_holding *buckets[BUCKETS];
_Atomic bool ll_holding_is_any;
static struct ll_fork_item fork_item;
static bool has_fork_item;

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&ll_holding_lock, NULL);
	memset(buckets, 0, sizeof buckets);
	ll_holding_is_any = false;
}

/* ---- holdings of this process ---- */

static struct ll_holding **find_link(uint64_t id)
{
	struct ll_holding **link = &buckets[id % BUCKETS];
	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void note_use(void)
{
	ll_holding_is_any = true;
	if (has_fork_item)
		return;
	has_fork_item = true;
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

struct ll_holding *ll_holding_find(uint64_t id)
{
	return *find_link(id);
}

struct ll_holding *ll_holding_find_or_add(struct ll_device_state *dev, uint64_t id)
{
	struct ll_holding **link = find_link(id), *holding = *link;
	if (holding)
		return holding;
	holding = calloc(1, sizeof *holding);
	if (!holding)
		return NULL;
	*holding = (struct ll_holding){.dev = dev, .id = id, .next = buckets[id % BUCKETS]};
	buckets[id % BUCKETS] = holding;
	note_use();
	return holding;
}

void ll_holding_forget(struct ll_holding *holding)
{
	*find_link(holding->id) = holding->next;
	free(holding);
}

/* ---- rows ---- */

uint64_t ll_holding_tenant(void)
{
	return ll_device_state_settings()->id;
}

static bool is_holder(const struct ll_exported_row *row, uint64_t tenant, uint64_t id)
{
	return row->kind == LL_EXPORTED_HOLDER && row->tenant == tenant && row->id == id;
}

bool ll_holding_is_alive(const struct ll_device_state *dev, const struct ll_exported_row *row)
{
	struct ll_port_name name = {.token = row->claim,
				    .namespaces = row->namespaces,
				    .start_ticks = row->start_ticks,
				    .slot = row->slot,
				    .pid = row->pid};
	/* This process cannot see the claims of other tenants, but it can see their processes. */
	return row->tenant == ll_holding_tenant() ? ll_port_has_name(dev->port, &name)
						  : name.token && !ll_port_is_gone(&name);
}

static bool is_own(const struct ll_holding *holding, const struct ll_exported_row *row)
{
	return is_holder(row, ll_holding_tenant(), holding->id) && row->claim == holding->claim &&
	       row->slot == holding->slot;
}

static bool is_open_descriptor(const struct ll_exported_row *row, uint64_t tenant, uint64_t id)
{
	struct ll_descriptor_file file = {row->device, row->inode};
	return row->kind == LL_EXPORTED_DESCRIPTOR && row->tenant == tenant && row->id == id &&
	       ll_descriptor_is_open(id, row->path, &file);
}

bool ll_holding_has_others(const struct ll_device_state *dev, const struct ll_exported_table *table, uint64_t tenant,
			   uint64_t id, const struct ll_holding *but)
{
	LL_EXPORTED_EACH(table, row)
	{
		bool holds = is_holder(row, tenant, id) && row->flags & LL_EXPORTED_HOLDS &&
			     ll_holding_is_alive(dev, row) && !(but && is_own(but, row));
		if (holds || is_open_descriptor(row, tenant, id))
			return true;
	}
	return false;
}

const struct ll_exported_row *ll_holding_find_carrier(const struct ll_device_state *dev,
						      const struct ll_exported_table *table, uint64_t id,
						      const struct ll_holding *but)
{
	const struct ll_exported_row *carrier = NULL;
	LL_EXPORTED_EACH(table, row)
	{
		if (is_holder(row, ll_holding_tenant(), id) && row->flags & LL_EXPORTED_CARRIES &&
		    ll_holding_is_alive(dev, row) && !(but && is_own(but, row)) &&
		    (!carrier || row->bytes > carrier->bytes))
			carrier = row;
	}
	return carrier;
}

uint64_t ll_holding_find_size(const struct ll_exported_table *table, uint64_t id)
{
	uint64_t bytes = 0;
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind == LL_EXPORTED_HOLDER && row->id == id && row->bytes > bytes)
			bytes = row->bytes;
	}
	return bytes;
}

int ll_holding_write(struct ll_exported_table *table, struct ll_holding *holding)
{
	struct ll_port_name name = ll_port_name_of(atomic_load(&holding->dev->claim));
	struct ll_exported_row wanted = {
	    .kind = LL_EXPORTED_HOLDER,
	    .flags = (holding->uses ? LL_EXPORTED_HOLDS : 0U) | (holding->is_carried ? LL_EXPORTED_CARRIES : 0U),
	    .id = holding->id,
	    .tenant = ll_holding_tenant(),
	    .bytes = holding->bytes,
	    .claim = name.token,
	    .namespaces = name.namespaces,
	    .start_ticks = name.start_ticks,
	    .slot = name.slot,
	    .pid = name.pid,
	};
	struct ll_exported_row *own = NULL;
	LL_EXPORTED_EACH(table, row)
	{
		if (is_own(holding, row))
			own = row;
	}
	holding->claim = wanted.claim;
	holding->slot = wanted.slot;
	if (!own)
		return ll_exported_table_add(table, &wanted);
	if (memcmp(own, &wanted, sizeof wanted) == 0)
		return 0;
	*own = wanted;
	return ll_exported_table_write(table, own);
}

static bool is_held_by_any(const struct ll_exported_table *table, uint64_t id)
{
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind == LL_EXPORTED_HOLDER && row->id == id)
			return true;
	}
	return false;
}

void ll_holding_free_rest(struct ll_exported_table *table, uint64_t id)
{
	if (is_held_by_any(table, id))
		return;
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind != LL_EXPORTED_FREE && row->id == id)
			ll_exported_table_free(table, row);
	}
}

static void free_own_row(struct ll_exported_table *table, const struct ll_holding *holding)
{
	LL_EXPORTED_EACH(table, row)
	{
		if (is_own(holding, row))
			ll_exported_table_free(table, row);
	}
	ll_holding_free_rest(table, holding->id);
}

/* ---- the table ---- */

/* Moves a holding to the process's new claim. The new claim was charged for all memory that this process carries. If
 * another process has begun to carry the memory meanwhile, returns the charge. */
static void move_to_claim(struct ll_exported_table *table, struct ll_holding *holding)
{
	if (holding->is_carried && ll_holding_find_carrier(holding->dev, table, holding->id, holding)) {
		ll_device_state_release(holding->dev, holding->charged_bytes);
		holding->charged_bytes = 0;
		holding->is_carried = false;
	}
	ll_holding_write(table, holding);
}

bool ll_holding_must_follow(const struct ll_device_state *dev)
{
	uint64_t token = ll_holding_is_any ? ll_port_name_of(atomic_load(&dev->claim)).token : 0;
	return token && token != dev->shared_claim;
}

static void follow_claim(struct ll_device_state *dev, struct ll_exported_table *table)
{
	uint64_t token = ll_port_name_of(atomic_load(&dev->claim)).token;
	if (!token || token == dev->shared_claim)
		return;
	dev->shared_claim = token;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct ll_holding *holding = buckets[i]; holding; holding = holding->next) {
			if (holding->dev == dev && holding->claim)
				move_to_claim(table, holding);
		}
	}
}

int ll_holding_open_table(struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table)
{
	int rc = ll_exported_table_open(dev, is_created, ret_table);
	if (rc == 0)
		follow_claim(dev, ret_table);
	return rc;
}

/* ---- releasing ---- */

void ll_holding_give_back(struct ll_exported_table *table, struct ll_holding *holding)
{
	if (table)
		free_own_row(table, holding);
	if (holding->charged_bytes)
		ll_device_state_release(holding->dev, holding->charged_bytes);
	ll_holding_forget(holding);
}

/* Keeps the holding for others. A block of a pool was charged together with its pool, and the pool has returned it. So
 * the block is charged separately now. */
static void carry_for_others(struct ll_exported_table *table, struct ll_holding *holding)
{
	if (holding->charged_bytes < holding->bytes) {
		ll_device_state_charge(holding->dev, holding->bytes - holding->charged_bytes);
		holding->charged_bytes = holding->bytes;
		holding->is_pooled = false;
	}
	ll_holding_write(table, holding);
}

bool ll_holding_let_go(struct ll_exported_table *table, struct ll_holding *holding)
{
	bool is_less = holding->charged_bytes != 0;
	if (!table || !holding->is_carried ||
	    !ll_holding_has_others(holding->dev, table, ll_holding_tenant(), holding->id, holding)) {
		ll_holding_give_back(table, holding);
		return is_less;
	}
	carry_for_others(table, holding);
	return false;
}

bool ll_holding_let_go_unused(struct ll_device_state *dev, struct ll_exported_table *table)
{
	bool is_less = false;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct ll_holding *holding = buckets[i], *next; holding; holding = next) {
			next = holding->next;
			if (holding->dev == dev && !holding->uses)
				is_less |= ll_holding_let_go(table, holding);
		}
	}
	return is_less;
}

bool ll_holding_any_unused(const struct ll_device_state *dev)
{
	for (size_t i = 0; ll_holding_is_any && i < BUCKETS; i++) {
		for (const struct ll_holding *holding = buckets[i]; holding; holding = holding->next) {
			if (holding->dev == dev && !holding->uses)
				return true;
		}
	}
	return false;
}
