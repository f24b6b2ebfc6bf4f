#include "ledger/virtual_time.h"

#include "control/visits.h"
#include "ledger/liveness.h"

/* The virtual time of a second of GPU time, at the least weight (0.01). */
enum { VIRTUAL_MOST = 100 };

/* No tenant had more than the time since the machine started, at the least weight. A larger value is damaged. */
static bool is_sound(uint64_t virtual_ns, uint64_t now_ns)
{
	uint64_t most_ns = now_ns + LL_CONTENDER_MARGIN_NS;
	return virtual_ns / VIRTUAL_MOST <= most_ns;
}

/* Gives the least and the most virtual time of a class's contenders that may use the card now. Those that their caps
 * hold back do not count. False: there is none. */
static bool least_of_class(const struct ll_contender_scan *scan, unsigned rank, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t least_ns = UINT64_MAX;
	for (size_t i = 0; i < scan->count; i++) {
		const struct ll_contender *other = &scan->contenders[i];
		if (other->rank == rank && other->has_tokens && other->virtual_ns < least_ns &&
		    is_sound(other->virtual_ns, now_ns))
			least_ns = other->virtual_ns;
	}
	*ret_ns = least_ns;
	return least_ns != UINT64_MAX;
}

/* Returns the most virtual time of a class's tenants, whether they want the card or not. 0: there is none. */
static uint64_t most_of_class(const struct ll_ledger_file *file, unsigned rank, uint64_t now_ns)
{
	uint64_t most_ns = 0;
	LL_CONTENDER_EACH(file, index)
	{
		const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
		if (!tenant || ll_contender_rank(tenant) != rank)
			continue;
		uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
		if (virtual_ns > most_ns && is_sound(virtual_ns, now_ns))
			most_ns = virtual_ns;
	}
	return most_ns;
}

static void limit_behind(struct ll_ledger_tenant *tenant, uint64_t least_ns)
{
	uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	uint64_t back_ns = ll_visits_come_back_ns(virtual_ns, least_ns, weight);
	if (back_ns > virtual_ns) /* if a sibling has charged meanwhile, there was no pause, and its value stays */
		atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, back_ns);
}

static void limit_ahead(struct ll_ledger_tenant *tenant, uint64_t least_ns)
{
	uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns);
	unsigned weight = atomic_load_explicit(&tenant->weight_permille, memory_order_relaxed);
	uint64_t most_ns = least_ns + ll_visits_virtual_ns(LL_VISIT_LAG_NS, weight);
	if (virtual_ns > most_ns) /* if the tenant is charged meanwhile, the next look forgives it */
		atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, most_ns);
}

void ll_virtual_time_come_back(struct ll_ledger_file *file, struct ll_ledger_tenant *tenant,
			       const struct ll_contender_scan *scan, uint64_t now_ns)
{
	unsigned rank = ll_contender_rank(tenant);
	uint64_t from_ns;
	if (!least_of_class(scan, rank, now_ns, &from_ns))
		from_ns = most_of_class(file, rank, now_ns);
	limit_behind(tenant, from_ns);
}

void ll_virtual_time_limit_credit(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan,
				  uint64_t now_ns)
{
	uint64_t least_ns;
	if (least_of_class(scan, ll_contender_rank(tenant), now_ns, &least_ns))
		limit_behind(tenant, least_ns);
}

void ll_virtual_time_forgive(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns)
{
	uint64_t least_ns;
	if (least_of_class(scan, ll_contender_rank(tenant), now_ns, &least_ns))
		limit_ahead(tenant, least_ns);
}

void ll_virtual_time_enter_class(struct ll_ledger_file *file, uint32_t row, uint64_t now_ns)
{
	struct ll_ledger_tenant *tenant = &file->tenants[row - 1];
	struct ll_contender_scan scan;
	ll_contender_scan_others(file, row, now_ns, &scan);
	ll_virtual_time_come_back(file, tenant, &scan, now_ns);
	ll_virtual_time_forgive(tenant, &scan, now_ns);
}

void ll_virtual_time_mend(struct ll_ledger_tenant *tenant, const struct ll_contender_scan *scan, uint64_t now_ns)
{
	uint64_t virtual_ns = atomic_load(&tenant->virtual_time_ns), least_ns;
	if (!is_sound(virtual_ns, now_ns) && least_of_class(scan, ll_contender_rank(tenant), now_ns, &least_ns))
		atomic_compare_exchange_strong(&tenant->virtual_time_ns, &virtual_ns, least_ns);
}
