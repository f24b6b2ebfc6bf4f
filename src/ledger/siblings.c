#include "ledger/siblings.h"

#include "ledger/handle.h"
#include "ledger/slot.h"

/* Another process of the claim's tenant that has memory; NULL: the slot is none. */
static struct ll_ledger_slot *sibling(const struct ll_claim *claim, unsigned index)
{
	struct ll_ledger_file *file = claim->ledger->file;
	struct ll_ledger_slot *slot = &file->slots[index];
	bool is_one = index != claim->index && ll_slot_is_used(file, index) && slot->token &&
		      slot->tenant_row == claim->tenant_row && slot->memory_used_bytes;
	return is_one ? slot : NULL;
}

unsigned ll_siblings_ask(struct ll_claim *claim, uint64_t now_ns)
{
	unsigned count = 0;
	if (!ll_claim_is_ours(claim) || !claim->tenant_row)
		return 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		struct ll_ledger_slot *slot = sibling(claim, i);
		if (!slot)
			continue;
		atomic_store(&slot->asked_ns, now_ns);
		ll_slot_wake(slot);
		count++;
	}
	return count;
}

unsigned ll_siblings_unanswered(const struct ll_claim *claim)
{
	unsigned count = 0;
	for (unsigned i = 0; i < LL_LEDGER_CLAIMS; i++) {
		const struct ll_ledger_slot *slot = sibling(claim, i);
		count += slot && slot->asked_ns;
	}
	return count;
}

bool ll_siblings_do_ask(const struct ll_claim *claim)
{
	return ll_claim_is_ours(claim) && claim->slot->asked_ns;
}

void ll_siblings_answer(struct ll_claim *claim)
{
	if (ll_claim_is_ours(claim))
		atomic_store(&claim->slot->asked_ns, 0);
}
