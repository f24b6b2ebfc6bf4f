#include "shim/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/device_state.h"
#include "shim/link/port.h"
#include "shim/memory/exported_table.h"
#include "shim/memory/pools.h"

/* ---- which memory a descriptor refers to ---- */

/*
 * Finds the memory that a descriptor refers to, and whether any process has a descriptor of it open.
 *
 * All descriptors of exported memory refer to one device file of the driver, so name and inode cannot distinguish them.
 * But a descriptor that is sent to another process keeps its open file description, and a lock on a byte of a file can
 * belong to an open file description. So the library takes a shared lock on the byte whose number is the memory's id.
 * The /proc file system shows the locks of a descriptor. The kernel frees the lock when the last descriptor of the
 * description is closed, in any process or socket. So a process can test through another description of the file
 * whether a descriptor is still open.
 *
 * Needs Linux 4.1. If a call fails, the library knows nothing about the descriptor.
 */

/* The first id. It is far above the bytes that other programs lock. */
#define LL_DESCRIPTOR_FIRST_ID (UINT64_C(0x4c4c) << 48)

static struct flock lock_of(uint64_t id, short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)id, .l_len = 1};
}

/* Gives the descriptor an id. Returns false if the id could not be read later. */
static bool descriptor_mark(int fd, uint64_t id)
{
	struct flock lock = lock_of(id, F_RDLCK);
	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

enum { WORDS_BEFORE = 5, INFO_SIZE = 2048 };

/* Returns the id of the descriptor; 0: it has none, or the id cannot be read. */
static uint64_t descriptor_id(int fd)
{
	char path[48], info[INFO_SIZE];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	LL_SCOPE_CLOSE int info_fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = info_fd < 0 ? 0 : read(info_fd, info, sizeof info - 1);
	info[length > 0 ? length : 0] = '\0';
	/* The first locked byte is a word of a line like "OFDLCK ADVISORY READ 1234 00:05:678 5497… 5497…". */
	for (const char *lock = info; (lock = strstr(lock, "OFDLCK")); lock++) {
		const char *word = lock;
		for (int i = 0; word && i < WORDS_BEFORE; i++) {
			word = strchr(word, ' ');
			word = word ? word + strspn(word, " ") : NULL;
		}
		uint64_t first = word ? strtoull(word, NULL, 10) : 0;
		if (first >= LL_DESCRIPTOR_FIRST_ID)
			return first;
	}
	return 0;
}

/* ---- what this process holds ---- */

/*
 * The exported memory that this process holds or carries for others, and its rows in the table (exported_table.h).
 *
 * The caller holds holding_lock. A table that is passed to a function is open.
 */

/* Memory that this process shares with others. */
struct ll_holding {
	struct ll_device_state *dev;
	uint64_t id;
	uint64_t bytes;         /* the memory's size on the card; 0: not known yet */
	uint64_t charged_bytes; /* the charge of this process, for the tenant */
	uint64_t claim; /* token of the claim under which the holding's row was written; slot: the claim's slot */
	uint32_t slot;
	unsigned uses;   /* 0: this process only carries the charge for others */
	bool is_carried; /* this process carries the charge */
	bool is_pooled;  /* it is a block of a pool of this process, and the pool is charged for it */
	struct ll_holding *next;
};

enum { BUCKETS = 256 };

static pthread_mutex_t holding_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ll_holding *buckets[BUCKETS];
static _Atomic bool has_holdings; /* the process had a holding at some time; readable without the lock */

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&holding_lock, NULL);
	memset(buckets, 0, sizeof buckets);
	has_holdings = false;
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

/* ---- holdings of this process ---- */

static struct ll_holding **find_link(uint64_t id)
{
	struct ll_holding **link = &buckets[id % BUCKETS];
	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

/* Returns the holding of the memory; NULL: there is none. holding_find_or_add makes one if there is none; NULL: no
 * memory. */
static struct ll_holding *holding_find(uint64_t id)
{
	return *find_link(id);
}

static struct ll_holding *holding_find_or_add(struct ll_device_state *dev, uint64_t id)
{
	struct ll_holding **link = find_link(id), *holding = *link;
	if (holding)
		return holding;
	holding = calloc(1, sizeof *holding);
	if (!holding)
		return NULL;
	*holding = (struct ll_holding){.dev = dev, .id = id, .next = buckets[id % BUCKETS]};
	buckets[id % BUCKETS] = holding;
	ll_fork_add(&fork_item);
	has_holdings = true;
	return holding;
}

static void holding_forget(struct ll_holding *holding)
{
	*find_link(holding->id) = holding->next;
	free(holding);
}

/* ---- rows ---- */

/* Returns the id of this process's tenant. */
static uint64_t holding_tenant(void)
{
	return ll_device_state_settings()->id;
}

static bool is_holder(const struct ll_exported_row *row, uint64_t tenant, uint64_t id)
{
	return row->kind == LL_EXPORTED_HOLDER && row->tenant == tenant && row->id == id;
}

/* Returns whether the claim of a holder's row still exists. */
static bool holding_is_alive(const struct ll_device_state *dev, const struct ll_exported_row *row)
{
	struct ll_port_name name = {.token = row->claim,
				    .namespaces = row->namespaces,
				    .start_ticks = row->start_ticks,
				    .slot = row->slot,
				    .pid = row->pid};
	/* This process cannot see the claims of other tenants, but it can see their processes. */
	return row->tenant == holding_tenant() ? ll_port_has_name(dev->port, &name)
					       : name.token && !ll_port_is_gone(&name);
}

static bool is_own(const struct ll_holding *holding, const struct ll_exported_row *row)
{
	return is_holder(row, holding_tenant(), holding->id) && row->claim == holding->claim &&
	       row->slot == holding->slot;
}

/* Returns whether the row is of the memory, and its descriptor is open in any process. Returns true if the latter
 * cannot be found out. */
static bool is_open_descriptor(const struct ll_exported_row *row, uint64_t tenant, uint64_t id)
{
	if (row->kind != LL_EXPORTED_DESCRIPTOR || row->tenant != tenant || row->id != id)
		return false;
	struct stat st;
	struct flock lock = lock_of(id, F_WRLCK);
	LL_SCOPE_CLOSE int fd = open(row->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || st.st_dev != row->device || st.st_ino != row->inode ||
	    fcntl(fd, F_OFD_GETLK, &lock))
		return true;
	return lock.l_type != F_UNLCK;
}

/* Returns whether the tenant holds the memory by a process or a descriptor. Does not count the holding `but`, which may
 * be NULL. */
static bool holding_has_others(const struct ll_device_state *dev, const struct ll_exported_table *table,
			       uint64_t tenant, uint64_t id, const struct ll_holding *but)
{
	LL_EXPORTED_EACH(table, row)
	{
		bool holds = is_holder(row, tenant, id) && row->flags & LL_EXPORTED_HOLDS &&
			     holding_is_alive(dev, row) && !(but && is_own(but, row));
		if (holds || is_open_descriptor(row, tenant, id))
			return true;
	}
	return false;
}

/* Returns the row of the process that carries the memory for this process's tenant; NULL: there is none. Does not count
 * the holding `but`. */
static const struct ll_exported_row *holding_find_carrier(const struct ll_device_state *dev,
							  const struct ll_exported_table *table, uint64_t id,
							  const struct ll_holding *but)
{
	const struct ll_exported_row *carrier = NULL;
	LL_EXPORTED_EACH(table, row)
	{
		if (is_holder(row, holding_tenant(), id) && row->flags & LL_EXPORTED_CARRIES &&
		    holding_is_alive(dev, row) && !(but && is_own(but, row)) &&
		    (!carrier || row->bytes > carrier->bytes))
			carrier = row;
	}
	return carrier;
}

/* Returns the largest size of the memory that any process has written; 0: none has. */
static uint64_t holding_find_size(const struct ll_exported_table *table, uint64_t id)
{
	uint64_t bytes = 0;
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind == LL_EXPORTED_HOLDER && row->id == id && row->bytes > bytes)
			bytes = row->bytes;
	}
	return bytes;
}

/* Writes the holding's row, and adds the row if it is missing. Returns -errno if it cannot be written; then other
 * processes do not know of the holding. */
static int holding_write(struct ll_exported_table *table, struct ll_holding *holding)
{
	struct ll_port_name name = ll_port_name_of(atomic_load(&holding->dev->claim));
	struct ll_exported_row wanted = {
	    .kind = LL_EXPORTED_HOLDER,
	    .flags = (holding->uses ? LL_EXPORTED_HOLDS : 0U) | (holding->is_carried ? LL_EXPORTED_CARRIES : 0U),
	    .id = holding->id,
	    .tenant = holding_tenant(),
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

/* Frees the names and descriptors of memory that no process holds. */
static void holding_free_rest(struct ll_exported_table *table, uint64_t id)
{
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind == LL_EXPORTED_HOLDER && row->id == id)
			return;
	}
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind != LL_EXPORTED_FREE && row->id == id)
			ll_exported_table_free(table, row);
	}
}

/* ---- the table ---- */

/* Moves a holding to the process's new claim. The new claim was charged for all memory that this process carries. If
 * another process has begun to carry the memory meanwhile, returns the charge. */
static void move_to_claim(struct ll_exported_table *table, struct ll_holding *holding)
{
	if (holding->is_carried && holding_find_carrier(holding->dev, table, holding->id, holding)) {
		ll_device_state_release(holding->dev, holding->charged_bytes);
		holding->charged_bytes = 0;
		holding->is_carried = false;
	}
	holding_write(table, holding);
}

/* Opens the table as ll_exported_table_open does. If this process has got another claim since the last time, writes its
 * rows again under the new claim. */
static int holding_open_table(struct ll_device_state *dev, bool is_created, struct ll_exported_table *ret_table)
{
	int rc = ll_exported_table_open(dev, is_created, ret_table);
	uint64_t token = ll_port_name_of(atomic_load(&dev->claim)).token;
	if (rc || !token || token == dev->shared_claim)
		return rc;
	dev->shared_claim = token;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct ll_holding *holding = buckets[i]; holding; holding = holding->next) {
			if (holding->dev == dev && holding->claim)
				move_to_claim(ret_table, holding);
		}
	}
	return 0;
}

/* ---- releasing ---- */

/* Ends the holding and returns its charge. The table may be NULL. */
static void holding_give_back(struct ll_exported_table *table, struct ll_holding *holding)
{
	if (table) {
		LL_EXPORTED_EACH(table, row)
		{
			if (is_own(holding, row))
				ll_exported_table_free(table, row);
		}
		holding_free_rest(table, holding->id);
	}
	if (holding->charged_bytes)
		ll_device_state_release(holding->dev, holding->charged_bytes);
	holding_forget(holding);
}

/* holding_let_go is for a holding without uses. It ends the holding, or keeps it because this process carries the
 * memory for others. Returns true if a charge was returned. table NULL: no other process knows of the holding.
 * holding_let_go_unused does this for all holdings without uses. holding_any_unused returns whether there are
 * any. */
static bool holding_let_go(struct ll_exported_table *table, struct ll_holding *holding)
{
	bool is_less = holding->charged_bytes != 0;
	if (!table || !holding->is_carried ||
	    !holding_has_others(holding->dev, table, holding_tenant(), holding->id, holding)) {
		holding_give_back(table, holding);
		return is_less;
	}
	/* A block of a pool was charged together with its pool, and the pool has returned it. So the block is charged
	 * separately now. */
	if (holding->charged_bytes < holding->bytes) {
		ll_device_state_charge(holding->dev, holding->bytes - holding->charged_bytes);
		holding->charged_bytes = holding->bytes;
		holding->is_pooled = false;
	}
	holding_write(table, holding);
	return false;
}

static bool holding_let_go_unused(struct ll_device_state *dev, struct ll_exported_table *table)
{
	bool is_less = false;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct ll_holding *holding = buckets[i], *next; holding; holding = next) {
			next = holding->next;
			if (holding->dev == dev && !holding->uses)
				is_less |= holding_let_go(table, holding);
		}
	}
	return is_less;
}

static bool holding_any_unused(const struct ll_device_state *dev)
{
	for (size_t i = 0; has_holdings && i < BUCKETS; i++) {
		for (const struct ll_holding *holding = buckets[i]; holding; holding = holding->next) {
			if (holding->dev == dev && !holding->uses)
				return true;
		}
	}
	return false;
}

/* ---- what dead processes held ---- */

/* Settles exported memory (exported.c) that dead processes carried, or that no process holds any more. */

/* Makes this process carry memory whose carrier is dead and which the tenant still holds. */
static void adopt_memory(struct ll_device_state *dev, struct ll_exported_table *table, uint64_t id)
{
	uint64_t bytes = holding_find_size(table, id);
	struct ll_holding *holding = holding_find_or_add(dev, id);
	if (!holding)
		return;
	if (bytes > holding->charged_bytes) {
		ll_device_state_charge(dev, bytes - holding->charged_bytes);
		holding->charged_bytes = bytes;
	}
	holding->bytes = bytes;
	holding->is_carried = true;
	holding_write(table, holding);
}

/* Frees the rows of dead processes of all tenants. If another tenant still holds the memory, its processes free the
 * row, because the row has the memory's size. */
static void clear_dead(struct ll_device_state *dev, struct ll_exported_table *table)
{
	LL_EXPORTED_EACH(table, row)
	{
		if (row->kind != LL_EXPORTED_HOLDER || holding_is_alive(dev, row))
			continue;
		uint64_t id = row->id;
		bool is_ours = row->tenant == holding_tenant(),
		     is_held = holding_has_others(dev, table, row->tenant, id, NULL);
		if (is_ours && is_held && !holding_find_carrier(dev, table, id, NULL))
			adopt_memory(dev, table, id);
		if (is_held && !is_ours)
			continue;
		ll_exported_table_free(table, row);
		holding_free_rest(table, id);
	}
}

/* Does ll_exported_settle. The lock is held. */
static bool settle_dead(struct ll_device_state *dev)
{
	struct ll_exported_table table;
	uint64_t death_ns = ll_port_death_ns(dev->port);
	/* If the process has got another claim since the table was last open, its rows belong to the former one. */
	uint64_t token = has_holdings ? ll_port_name_of(atomic_load(&dev->claim)).token : 0;
	bool must_follow = token && token != dev->shared_claim;
	if (death_ns == dev->settled_ns && !holding_any_unused(dev) && !must_follow)
		return false;
	int rc = holding_open_table(dev, false, &table);
	if (rc == -ENOENT) { /* there is no table, so no other process knows of exported memory */
		dev->settled_ns = death_ns;
		return holding_let_go_unused(dev, NULL);
	}
	if (rc < 0)
		return false;
	clear_dead(dev, &table);
	bool is_less = holding_let_go_unused(dev, &table);
	dev->settled_ns = death_ns;
	ll_exported_table_close(&table);
	return is_less;
}

bool ll_exported_settle(struct ll_device_state *dev)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	bool is_less = settle_dead(dev);
	errno = code;
	return is_less;
}

static void tend_exported(struct ll_device_state *dev)
{
	if (has_holdings || ll_exported_must_settle(dev))
		ll_exported_settle(dev);
	if (ll_lent_is_any)
		ll_pool_true_up_all(dev);
}

void ll_exported_watch(void)
{
	ll_device_state_set_tend(tend_exported);
}

/* ---- exporter and importer ---- */

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
	char link[48];
	struct stat st;
	struct ll_exported_row wanted = {.kind = LL_EXPORTED_DESCRIPTOR, .id = id, .tenant = holding_tenant()};
	if (!descriptor_mark(fd, id))
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, wanted.path, sizeof wanted.path - 1);
	if (length <= 0 || (size_t)length >= sizeof wanted.path - 1 || fstat(fd, &st))
		return;
	wanted.path[length] = '\0';
	wanted.device = st.st_dev;
	wanted.inode = st.st_ino;
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

/* Finds or makes the holding of the extent's memory. Returns NULL if the extent is not in the map, or if there is no
 * memory. The lock is held. */
static struct ll_holding *share_extent(enum ll_extent_kind kind, uint64_t address)
{
	struct ll_extent extent;
	if (!ll_extents_find(kind, address, &extent) || !extent.dev)
		return NULL;
	if (extent.shared)
		return holding_find(extent.shared);
	struct handover handover = {.id = new_id()};
	struct ll_holding *holding = holding_find_or_add(extent.dev, handover.id);
	if (!holding)
		return NULL;
	holding->uses = 1;
	holding->is_carried = true;
	holding->bytes =
	    extent.charged_bytes ? extent.charged_bytes : ll_footprint_round(extent.bytes, LL_FOOTPRINT_BLOCK_BYTES);
	bool is_there = ll_extents_change(kind, address, hand_over, (uintptr_t)&handover, NULL);
	holding->charged_bytes = handover.charged_bytes;
	holding->is_pooled = kind == LL_EXTENT_BLOCK;
	if (is_there && handover.id == holding->id)
		return holding;
	holding_forget(holding);
	return is_there ? holding_find(handover.id) : NULL;
}

void ll_exported_as_bytes(enum ll_extent_kind kind, uint64_t address, const void *handle, size_t size)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	struct ll_holding *holding = share_extent(kind, address);
	if (!holding || holding_open_table(holding->dev, true, &table) < 0)
		return;
	if (holding_write(&table, holding) == 0)
		put_name(&table, hash_of(handle, size), holding->id);
	ll_exported_table_close(&table);
}

void ll_exported_as_descriptor(enum ll_extent_kind kind, uint64_t address, int fd)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	struct ll_holding *holding = share_extent(kind, address);
	if (!holding || holding_open_table(holding->dev, true, &table) < 0)
		return;
	if (holding_write(&table, holding) == 0)
		put_descriptor(&table, holding->id, fd);
	ll_exported_table_close(&table);
}

/* ---- importing ---- */

uint64_t ll_exported_id_of_bytes(struct ll_device_state *dev, const void *handle, size_t size)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	uint64_t key = hash_of(handle, size), id = 0;
	struct ll_exported_table table;
	if (holding_open_table(dev, true, &table) < 0)
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
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	uint64_t id = descriptor_id(fd);
	if (id)
		return id;
	id = new_id();
	/* Another process of the tenant may have the same descriptor. Both processes get the same id. */
	if (holding_open_table(dev, true, &table) == 0) {
		uint64_t others = descriptor_id(fd);
		if (others)
			id = others;
		else
			descriptor_mark(fd, id);
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
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	const struct ll_holding *holding = holding_find(id);
	uint64_t has_bytes = holding ? carried_bytes(holding) : 0;
	if (holding_open_table(dev, true, &table) == 0) {
		uint64_t told_bytes = holding_find_size(&table, id);
		const struct ll_exported_row *carrier = holding_find_carrier(dev, &table, id, holding);
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
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	struct ll_holding *holding = holding_find_or_add(dev, id);
	if (!holding)
		return true; /* the memory is not charged, as if there were no memory for an extent */
	bool has_table = holding_open_table(dev, true, &table) == 0;
	bool is_done =
	    carry_charge(holding, has_table ? holding_find_carrier(dev, &table, id, holding) : NULL, bytes, charge);
	holding->uses += is_done && is_use;
	if (!holding->uses && !holding->is_carried)
		holding_forget(holding);
	else if (has_table)
		holding_write(&table, holding);
	if (has_table)
		ll_exported_table_close(&table);
	return is_done;
}

/* Frees the rows of memory that the limit refused, if no process holds the memory. */
static void forget_name(struct ll_device_state *dev, uint64_t id)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	if (holding_open_table(dev, false, &table) < 0)
		return;
	holding_free_rest(&table, id);
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

ll_cu_result ll_exported_hold(struct ll_device_state *dev, uint64_t id, uint64_t bytes)
{
	return hold_memory(dev, id, bytes, true);
}

ll_cu_result ll_exported_set_size(struct ll_device_state *dev, uint64_t id, uint64_t bytes)
{
	bool is_known;
	{
		LL_SCOPE_NO_CANCEL;
		LL_SCOPE_LOCK(&holding_lock);
		const struct ll_holding *holding = holding_find(id);
		is_known = holding && holding->bytes;
	}
	return is_known ? LL_CUDA_SUCCESS : hold_memory(dev, id, bytes, false);
}

/* ---- releasing ---- */

void ll_exported_drop(uint64_t id)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_holding *holding = holding_find(id);
	if (holding && holding->uses && --holding->uses == 0) {
		/* If the table cannot be opened, the charge stays until it can, unless no other process knows of the
		 * memory. */
		struct ll_exported_table table;
		int rc = holding_open_table(holding->dev, false, &table);
		if (rc == 0) {
			holding_let_go(&table, holding);
			ll_exported_table_close(&table);
		} else if (rc == -ENOENT || !holding->claim) {
			holding_give_back(NULL, holding);
		}
	}
	errno = code;
}

void ll_exported_drop_owned(uint64_t owner)
{
	struct ll_extent extent = {0}, taken;
	if (!has_holdings || !owner)
		return;
	while (ll_extents_next(&extent)) {
		if (extent.owner == owner && extent.shared && ll_extents_remove(extent.kind, extent.address, &taken))
			ll_charge_release(&taken);
	}
}

bool ll_exported_is_for_others(struct ll_device_state *dev, uint64_t id)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&holding_lock);
	struct ll_exported_table table;
	const struct ll_holding *holding = holding_find(id);
	if (!holding || !holding->is_carried)
		return false;
	if (holding->uses > 1)
		return true;
	if (holding_open_table(dev, false, &table) < 0)
		return false;
	bool is_for_others = holding->is_carried && holding_has_others(dev, &table, holding_tenant(), id, holding);
	ll_exported_table_close(&table);
	return is_for_others;
}
