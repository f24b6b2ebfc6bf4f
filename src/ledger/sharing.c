#include "ledger/sharing.h"

/* Of each tenant's row; those that want the card. The card gives a slice to each process. */
static bool are_as_many(const uint8_t processes[LL_LEDGER_TENANTS + 1])
{
	unsigned number = 0;
	for (unsigned row = 1; row <= LL_LEDGER_TENANTS; row++) {
		if (processes[row] && number && processes[row] != number)
			return false;
		if (processes[row])
			number = processes[row];
	}
	return true;
}

bool ll_sharing_is_sliced(struct ll_ledger_file *file, uint64_t now_ns)
{
	uint8_t processes[LL_LEDGER_TENANTS + 1] = {0};
	struct ll_turn_contender all, contender;
	bool has_any = false;
	LL_CONTENDER_EACH(file, index)
	{
		if (ll_contender_is_deaf(file, index, now_ns) || !ll_contender_read(file, index, now_ns, &contender))
			continue;
		if (!has_any)
			all = contender;
		has_any = true;
		if (!ll_turns_may_slice(&all, &contender))
			return false;
		all.launches_ahead &= contender.launches_ahead;
		all.is_by_space &= contender.is_by_space;
		uint32_t row = ll_contender_row(file, index);
		processes[row <= LL_LEDGER_TENANTS ? row : 0]++; /* another process may have damaged it since */
	}
	return are_as_many(processes);
}

/* To the card all clients of MPS are one program, and get the slices of one: they have row 0 here. */
static uint32_t sliced_row(struct ll_ledger_file *file, unsigned index)
{
	const struct ll_ledger_tenant *tenant = ll_contender_tenant(file, &file->slots[index]);
	return tenant && ll_contender_is_by_space(tenant) ? 0 : ll_contender_row(file, index);
}

unsigned ll_sharing_count(struct ll_ledger_file *file, unsigned self, const struct ll_contender_scan *scan,
			  uint64_t least_ns)
{
	uint32_t own_row = sliced_row(file, self), rows[LL_LEDGER_CLAIMS];
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++) {
		struct ll_ledger_slot *slot = &file->slots[scan->slots[i]];
		uint32_t row = sliced_row(file, scan->slots[i]);
		unsigned known = 0;
		if (row == own_row || atomic_load_explicit(&slot->queued_ns, memory_order_relaxed) < least_ns)
			continue;
		while (known < count && rows[known] != row)
			known++;
		if (known == count)
			rows[count++] = row;
	}
	return count;
}

unsigned ll_sharing_lingering(const struct ll_contender_scan *scan)
{
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++)
		count += scan->contenders[i].lingers;
	return count;
}
