#include "shim/memory/exported.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "shim/memory/charge.h"
#include "shim/memory/descriptor.h"
#include "shim/memory/exported_holding.h"

enum { ID_BITS = 48 };

/* ---- ids and names ---- */

/* The hash function FNV-1a. */
static uint64_t hash_of(const void *bytes, size_t size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t new_id(void)
{
	static uint64_t count;
	uint64_t seed[] = {(uint64_t)getpid(), ll_now_ns(), ++count, (uintptr_t)&count};
	unsigned char bytes[sizeof seed];
	memcpy(bytes, seed, sizeof seed);
	return LL_DESCRIPTOR_FIRST_ID | (hash_of(bytes, sizeof bytes) >> (64 - ID_BITS));
}

static void put_name(struct ll_exported_table *table, uint64_t key, uint64_t id)
{
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind != LL_EXPORTED_NAME || row->key != key)
			continue;
		row->id = id; /* the row of older memory whose handle had the same bytes */
		ll_exported_table_write(table, row);
		return;
	}
	ll_exported_table_add(table, &(struct ll_exported_row){.kind = LL_EXPORTED_NAME, .key = key, .id = id});
}

static void put_descriptor(struct ll_exported_table *table, uint64_t id, int fd)
{
	struct ll_descriptor_file file;
	struct ll_exported_row wanted = {.kind = LL_EXPORTED_DESCRIPTOR, .id = id, .tenant = ll_holding_tenant()};
	if (!ll_descriptor_mark(fd, id) || !ll_descriptor_find_file(fd, wanted.path, sizeof wanted.path - 1, &file))
		return;
	wanted.device = file.device;
	wanted.inode = file.inode;
	LL_EXPORTED_EACH(table, row)
	{
		if (memcmp(row, &wanted, sizeof wanted) == 0)
			return;
	}
	ll_exported_table_add(table, &wanted);
}

/* ---- exporting ---- */

struct handover {
	uint64_t id, charged_bytes;
};

/* Moves the charge from the extent to the holding. */
static bool hand_over(struct ll_extent *extent, uint64_t argument)
{
	struct handover *handover = (void *)(uintptr_t)argument;
	if (extent->shared) {
		handover->id = extent->shared;
		return true;
	}
	extent->shared = handover->id;
	handover->charged_bytes = extent->charged_bytes;
	extent->charged_bytes = 0;
	return true;
}

/* Returns the size of an extent's memory on the card. */
static uint64_t bytes_of(const struct ll_extent *extent)
{
	return extent->charged_bytes ? extent->charged_bytes
				     : ll_footprint_round(extent->bytes, LL_FOOTPRINT_BLOCK_BYTES);
}

/* Finds or makes the holding of the extent's memory. Returns NULL if the extent is not in the map, or if there is no
 * memory. The lock is held. */
static struct ll_holding *share_extent(enum ll_extent_kind kind, uint64_t address)
{
	struct ll_extent extent;
	if (!ll_extents_find(kind, address, &extent) || !extent.dev)
		return NULL;
	if (extent.shared)
		return ll_holding_find(extent.shared);
	struct handover handover = {.id = new_id()};
	struct ll_holding *holding = ll_holding_find_or_add(extent.dev, handover.id);
	if (!holding)
		return NULL;
	holding->uses = 1;
	holding->is_carried = true;
	holding->bytes = bytes_of(&extent);
	bool is_there = ll_extents_change(kind, address, hand_over, (uintptr_t)&handover, NULL);
	holding->charged_bytes = handover.charged_bytes;
	holding->is_pooled = kind == LL_EXTENT_BLOCK;
	if (is_there && handover.id == holding->id)
		return holding;
	ll_holding_forget(holding);
	return is_there ? ll_holding_find(handover.id) : NULL;
}

void ll_exported_as_bytes(enum ll_extent_kind kind, uint64_t address, const void *handle, size_t size)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	struct ll_holding *holding = share_extent(kind, address);
	if (!holding || ll_holding_open_table(holding->dev, true, &table) < 0)
		return;
	if (ll_holding_write(&table, holding) == 0)
		put_name(&table, hash_of(handle, size), holding->id);
	ll_exported_table_close(&table);
}

void ll_exported_as_descriptor(enum ll_extent_kind kind, uint64_t address, int fd)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	struct ll_holding *holding = share_extent(kind, address);
	if (!holding || ll_holding_open_table(holding->dev, true, &table) < 0)
		return;
	if (ll_holding_write(&table, holding) == 0)
		put_descriptor(&table, holding->id, fd);
	ll_exported_table_close(&table);
}

/* ---- importing ---- */

uint64_t ll_exported_id_of_bytes(struct ll_device_state *dev, const void *handle, size_t size)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	uint64_t key = hash_of(handle, size), id = 0;
	struct ll_exported_table table;
	if (ll_holding_open_table(dev, true, &table) < 0)
		return new_id();
	LL_EXPORTED_EACH(&table, row)
	{
		if (row->kind == LL_EXPORTED_NAME && row->key == key)
			id = row->id;
	}
	if (!id)
		put_name(&table, key, id = new_id());
	ll_exported_table_close(&table);
	return id;
}

uint64_t ll_exported_id_of_descriptor(struct ll_device_state *dev, int fd)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	uint64_t id = ll_descriptor_id(fd);
	if (id)
		return id;
	id = new_id();
	/* Another process of the tenant may have the same descriptor. Both processes get the same id. */
	if (ll_holding_open_table(dev, true, &table) == 0) {
		uint64_t others = ll_descriptor_id(fd);
		if (others)
			id = others;
		else
			ll_descriptor_mark(fd, id);
		ll_exported_table_close(&table);
	}
	return id;
}

/* Returns the bytes that this process is already charged. */
static uint64_t carried_bytes(const struct ll_holding *holding)
{
	return holding->is_pooled ? holding->bytes : holding->charged_bytes;
}

/* Returns the bytes that must be charged to this process before it may hold the memory. *bytes: the memory's size; 0:
 * not known. */
static uint64_t find_needed(struct ll_device_state *dev, uint64_t id, uint64_t *bytes)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	const struct ll_holding *holding = ll_holding_find(id);
	uint64_t has_bytes = holding ? carried_bytes(holding) : 0;
	if (ll_holding_open_table(dev, true, &table) == 0) {
		uint64_t told_bytes = ll_holding_find_size(&table, id);
		const struct ll_exported_row *carrier = ll_holding_find_carrier(dev, &table, id, holding);
		*bytes = *bytes > told_bytes ? *bytes : told_bytes;
		if (carrier && carrier->bytes >= *bytes)
			has_bytes = *bytes;
		ll_exported_table_close(&table);
	}
	return *bytes > has_bytes ? *bytes - has_bytes : 0;
}

/* Makes this process carry the memory if no other process of the tenant carries it. Returns false if the charge is too
 * small. */
static bool carry_charge(struct ll_holding *holding, const struct ll_exported_row *carrier, uint64_t bytes,
			 struct ll_charge *charge)
{
	holding->bytes = holding->bytes > bytes ? holding->bytes : bytes;
	if (carrier && carrier->bytes >= bytes) {
		holding->is_carried = carried_bytes(holding) != 0;
		return true;
	}
	uint64_t lacks = bytes > carried_bytes(holding) ? bytes - carried_bytes(holding) : 0;
	if (charge->target.dev && charge->bytes < lacks)
		return false;
	holding->is_carried = true;
	holding->charged_bytes += charge->bytes;
	charge->bytes = 0;
	return true;
}

/* Adds the holding to the table. Returns false if another process has released the memory meanwhile and the charge is
 * too small now. */
static bool commit_row(struct ll_device_state *dev, uint64_t id, uint64_t bytes, bool is_use, struct ll_charge *charge)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	struct ll_holding *holding = ll_holding_find_or_add(dev, id);
	if (!holding)
		return true; /* the memory is not charged, as if there were no memory for an extent */
	bool has_table = ll_holding_open_table(dev, true, &table) == 0;
	bool is_done =
	    carry_charge(holding, has_table ? ll_holding_find_carrier(dev, &table, id, holding) : NULL, bytes, charge);
	holding->uses += is_done && is_use;
	if (!holding->uses && !holding->is_carried)
		ll_holding_forget(holding);
	else if (has_table)
		ll_holding_write(&table, holding);
	if (has_table)
		ll_exported_table_close(&table);
	return is_done;
}

/* Frees the rows of memory that the limit refused, if no process holds the memory. */
static void forget_name(struct ll_device_state *dev, uint64_t id)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	if (ll_holding_open_table(dev, false, &table) < 0)
		return;
	ll_holding_free_rest(&table, id);
	ll_exported_table_close(&table);
}

static ll_cu_result hold_memory(struct ll_device_state *dev, uint64_t id, uint64_t bytes, bool is_use)
{
	for (;;) {
		uint64_t known_bytes = bytes, needed = find_needed(dev, id, &known_bytes);
		LL_CHARGE(charge, (struct ll_charge_target){.dev = dev}, needed);
		if (charge.refusal) {
			forget_name(dev, id);
			return charge.refusal;
		}
		if (commit_row(dev, id, known_bytes, is_use, &charge))
			return LL_CUDA_SUCCESS;
	}
}

static bool is_size_known(uint64_t id)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	const struct ll_holding *holding = ll_holding_find(id);
	return holding && holding->bytes;
}

ll_cu_result ll_exported_hold(struct ll_device_state *dev, uint64_t id, uint64_t bytes)
{
	return hold_memory(dev, id, bytes, true);
}

ll_cu_result ll_exported_set_size(struct ll_device_state *dev, uint64_t id, uint64_t bytes)
{
	return is_size_known(id) ? LL_CUDA_SUCCESS : hold_memory(dev, id, bytes, false);
}

/* ---- releasing ---- */

/* Ends a holding without uses. If the table cannot be opened, the charge stays until it can, unless no other process
 * knows of the memory. */
static void let_go(struct ll_holding *holding)
{
	struct ll_exported_table table;
	int rc = ll_holding_open_table(holding->dev, false, &table);
	if (rc == 0) {
		ll_holding_let_go(&table, holding);
		ll_exported_table_close(&table);
	} else if (rc == -ENOENT || !holding->claim) {
		ll_holding_give_back(NULL, holding);
	}
}

void ll_exported_drop(struct ll_device_state *dev, uint64_t id)
{
	int code = errno;
	(void)dev;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_holding *holding = ll_holding_find(id);
	if (holding && holding->uses && --holding->uses == 0)
		let_go(holding);
	errno = code;
}

void ll_exported_drop_owned(uint64_t owner)
{
	struct ll_extent extent = {0}, taken;
	if (!ll_holding_is_any || !owner)
		return;
	while (ll_extents_next(&extent)) {
		if (extent.owner == owner && extent.shared && ll_extents_remove(extent.kind, extent.address, &taken))
			ll_charge_release(&taken);
	}
}

bool ll_exported_is_for_others(struct ll_device_state *dev, uint64_t id)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&ll_holding_lock);
	struct ll_exported_table table;
	const struct ll_holding *holding = ll_holding_find(id);
	if (!holding || !holding->is_carried)
		return false;
	if (holding->uses > 1)
		return true;
	if (ll_holding_open_table(dev, false, &table) < 0)
		return false;
	bool is_for_others =
	    holding->is_carried && ll_holding_has_others(dev, &table, ll_holding_tenant(), id, holding);
	ll_exported_table_close(&table);
	return is_for_others;
}
