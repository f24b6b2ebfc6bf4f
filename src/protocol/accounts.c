#include "protocol/accounts.h"

#include "base/clock.h"

static uint64_t moment_ms(const struct ll_page_slot *slot, uint64_t now_ns)
{
	uint64_t taken_ns = atomic_load_explicit(&slot->taken_ns, memory_order_relaxed);
	return now_ns > taken_ns ? (now_ns - taken_ns) / LL_NS_PER_MS : 0;
}

void ll_accounts_note_charge(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns)
{
	atomic_fetch_add_explicit(&slot->memory_moments, units * moment_ms(slot, now_ns), memory_order_relaxed);
}

void ll_accounts_note_release(struct ll_page_slot *slot, uint64_t units, uint64_t now_ns)
{
	atomic_fetch_sub_explicit(&slot->memory_moments, units * moment_ms(slot, now_ns), memory_order_relaxed);
}

void ll_accounts_note_wait(struct ll_page_slot *slot, enum ll_wait cause, uint64_t ns)
{
	atomic_fetch_add_explicit(&slot->waited_ns[cause], ns, memory_order_relaxed);
}

void ll_accounts_read(const struct ll_page_slot *slot, uint64_t now_ns, struct ll_accounts *ret_accounts)
{
	uint64_t used = LL_MEMORY_USED(atomic_load_explicit(&slot->memory, memory_order_relaxed));
	uint64_t moments = atomic_load_explicit(&slot->memory_moments, memory_order_relaxed);
	int64_t area = (int64_t)(used * moment_ms(slot, now_ns) - moments);
	ret_accounts->held_unit_ms = area > 0 ? (uint64_t)area : 0;
	for (unsigned i = 0; i < LL_WAITS; i++)
		ret_accounts->waited_ns[i] = atomic_load_explicit(&slot->waited_ns[i], memory_order_relaxed);
}

static void add_accounts(struct ll_accounts *sum, const struct ll_accounts *other)
{
	sum->held_unit_ms += other->held_unit_ms;
	for (unsigned i = 0; i < LL_WAITS; i++)
		sum->waited_ns[i] += other->waited_ns[i];
}

void ll_accounts_read_card(const struct ll_page *page, unsigned card, uint64_t now_ns, struct ll_accounts *ret_accounts)
{
	const struct ll_page_card *ended = &page->cards[card];
	unsigned end = ll_page_slot_end(page);
	ret_accounts->held_unit_ms = atomic_load_explicit(&ended->ended_unit_ms, memory_order_relaxed);
	for (unsigned i = 0; i < LL_WAITS; i++)
		ret_accounts->waited_ns[i] = atomic_load_explicit(&ended->ended_waited_ns[i], memory_order_relaxed);
	for (unsigned i = 0; i < end; i++) {
		const struct ll_page_slot *slot = &page->slots[i];
		struct ll_accounts own;
		if (!atomic_load_explicit(&slot->token, memory_order_acquire) ||
		    atomic_load_explicit(&slot->card, memory_order_relaxed) != card)
			continue;
		ll_accounts_read(slot, now_ns, &own);
		add_accounts(ret_accounts, &own);
	}
}

void ll_accounts_end(struct ll_page *page, const struct ll_page_slot *slot, uint64_t now_ns)
{
	struct ll_accounts own;
	unsigned card = atomic_load_explicit(&slot->card, memory_order_relaxed);
	if (card >= LL_PAGE_CARDS)
		return;
	ll_accounts_read(slot, now_ns, &own);
	atomic_fetch_add_explicit(&page->cards[card].ended_unit_ms, own.held_unit_ms, memory_order_relaxed);
	for (unsigned i = 0; i < LL_WAITS; i++)
		atomic_fetch_add_explicit(&page->cards[card].ended_waited_ns[i], own.waited_ns[i],
					  memory_order_relaxed);
}
