/* The part of the port (port.h) about the time of the process's contexts on the card. */
#include "base/clock.h"
#include "protocol/accounts.h"
#include "shim/link/claim.h"
#include "shim/link/port.h"

enum { READ_TRIES = 1000 };

#define READ(field) atomic_load_explicit(&order->field, memory_order_relaxed)

/* Returns the sequence of the order; odd: it stayed incomplete, because a loadlined was killed while it wrote. */
static uint32_t read_order(const struct ll_orders_slot *order, struct ll_card_time *ret_time)
{
	uint32_t before, after;
	unsigned tries = 0;
	do {
		before = atomic_load(&order->sequence);
		*ret_time = (struct ll_card_time){.window_ns = READ(window_us) * LL_NS_PER_US,
						  .period_ns = READ(window_period_us) * LL_NS_PER_US,
						  .from_ns = READ(window_from_ns),
						  .slice_us = READ(slice_us)};
		atomic_thread_fence(memory_order_acquire);
		after = READ(sequence);
	} while ((before != after || before & 1) && ++tries < READ_TRIES);
	return before == after ? before : before | 1;
}

uint32_t ll_port_read_time(struct ll_claim *claim, uint64_t now_ns, struct ll_card_time *ret_time)
{
	uint32_t count = atomic_load(&claim->pages->orders->wake_count);
	*ret_time = (struct ll_card_time){0};
	if (!ll_claim_slot(claim))
		return count;
	uint32_t sequence = read_order(claim->order, ret_time);
	bool is_over = ll_lease_look(&claim->time_lease, claim->pages->orders, sequence,
				     ll_card_time_is_ordered(ret_time), now_ns);
	if (is_over || sequence & 1)
		*ret_time = (struct ll_card_time){0};
	ret_time->from_ns = ll_claim_own_ns(claim, ret_time->from_ns);
	return count;
}

bool ll_port_has_company(struct ll_claim *claim)
{
	return ll_claim_slot(claim) && atomic_load_explicit(&claim->order->sharing, memory_order_relaxed);
}

void ll_port_sleep_for_time(const struct ll_claim *claim, uint32_t count, uint64_t until_ns)
{
	ll_page_sleep(&claim->pages->orders->wake_count, count, until_ns);
}

void ll_port_report_time(struct ll_claim *claim, enum ll_time_lever lever)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot)
		atomic_store_explicit(&slot->time_lever, lever, memory_order_relaxed);
}

/* ---- times off the card ---- */

/* A program that has work and is off the card waits: for its cap, if it has one. */
static bool note_wait(struct ll_claim *claim, uint64_t ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	struct ll_limits limits;
	if (!slot || !atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed))
		return false;
	ll_orders_read_limits(claim->pages->orders, &limits);
	ll_accounts_note_wait(slot, limits.compute_permille ? LL_WAIT_CAP : LL_WAIT_TURN, ns);
	return true;
}

static void begin_off(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	unsigned next = claim->off_count++ % LL_CLAIM_OFF_TIMES;
	claim->off[next].start_ns = start_ns;
	claim->off[next].end_ns = end_ns;
}

uint64_t ll_port_note_off(struct ll_claim *claim, bool is_off, uint64_t now_ns)
{
	pthread_mutex_lock(&claim->off_lock);
	uint64_t since_ns = claim->off_since_ns;
	unsigned last = (claim->off_count - 1) % LL_CLAIM_OFF_TIMES;
	bool is_traced = claim->traced_ns, has_open = claim->off_count && !claim->off[last].end_ns;
	if (is_off && !since_ns && !is_traced)
		begin_off(claim, now_ns, 0);
	else if (!is_off && has_open)
		claim->off[last].end_ns = now_ns;
	claim->off_since_ns = !is_off ? 0 : since_ns ? since_ns : now_ns;
	pthread_mutex_unlock(&claim->off_lock);
	return !is_off && since_ns && note_wait(claim, now_ns - since_ns) ? since_ns : 0;
}

void ll_port_note_away(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	pthread_mutex_lock(&claim->off_lock);
	unsigned last = (claim->off_count - 1) % LL_CLAIM_OFF_TIMES;
	uint64_t before_ns = claim->off_count ? claim->off[last].end_ns : 0;
	if (claim->off_count && !before_ns)
		claim->off[last].end_ns = before_ns = start_ns;
	start_ns = before_ns > start_ns ? before_ns : start_ns;
	if (end_ns > start_ns)
		begin_off(claim, start_ns, end_ns);
	pthread_mutex_unlock(&claim->off_lock);
}

void ll_port_note_traced(struct ll_claim *claim, uint64_t until_ns)
{
	pthread_mutex_lock(&claim->off_lock);
	uint64_t before_ns = claim->traced_ns;
	if (before_ns && !until_ns && claim->off_since_ns)
		begin_off(claim, before_ns > claim->off_since_ns ? before_ns : claim->off_since_ns, 0);
	atomic_store(&claim->traced_ns, until_ns);
	pthread_mutex_unlock(&claim->off_lock);
}

uint64_t ll_port_traced_ns(const struct ll_claim *claim)
{
	return atomic_load(&claim->traced_ns);
}

/* The times are in order, so the search ends at the first one that is too old. */
uint64_t ll_port_off_ns(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t off_ns = 0;
	pthread_mutex_lock(&claim->off_lock);
	for (unsigned i = 1; i <= LL_CLAIM_OFF_TIMES && i <= claim->off_count; i++) {
		unsigned at = (claim->off_count - i) % LL_CLAIM_OFF_TIMES;
		uint64_t from_ns = claim->off[at].start_ns,
			 to_ns = claim->off[at].end_ns ? claim->off[at].end_ns : end_ns;
		if (to_ns <= start_ns)
			break;
		from_ns = from_ns > start_ns ? from_ns : start_ns;
		to_ns = to_ns < end_ns ? to_ns : end_ns;
		off_ns += to_ns > from_ns ? to_ns - from_ns : 0;
	}
	pthread_mutex_unlock(&claim->off_lock);
	return off_ns;
}
