/* The memory part of the port (port.h): a process reserves memory within its grant, and asks loadlined for a larger
 * grant. */
#include <errno.h>

#include "base/clock.h"
#include "base/scope.h"
#include "protocol/accounts.h"
#include "shim/link/claim.h"
#include "shim/link/port.h"

#define REPLY_NS (5000 * LL_NS_PER_MS)
/* WAKE is sent again after this time, because the last one may have gone to a former loadlined. */
#define WAKE_AGAIN_NS (100 * LL_NS_PER_MS)
/* How long a thread polls for a reply. A reply takes some 10 us if loadlined need not wait for a processor, and some
 * 100 us if the processor was asleep. */
#define LOOK_NS (150 * UINT64_C(1000))

/* ---- the word ---- */

/* Returns the most units that this process may use. The limit may have become lower than the grant. */
static uint64_t most_units(const struct ll_claim *claim, uint64_t word)
{
	uint64_t granted = LL_MEMORY_GRANTED(word), limit_bytes = ll_orders_memory_limit(claim->pages->orders);
	uint64_t limit = limit_bytes / LL_MEMORY_UNIT;
	return limit_bytes && limit < granted ? limit : granted;
}

static uint64_t page_now_ns(const struct ll_claim *claim)
{
	return ll_claim_page_ns(claim, ll_now_ns());
}

static bool reserve_granted(const struct ll_claim *claim, struct ll_page_slot *slot, uint64_t units)
{
	uint64_t word = atomic_load(&slot->memory);
	do {
		if (LL_MEMORY_USED(word) + units > most_units(claim, word))
			return false;
	} while (!atomic_compare_exchange_weak(&slot->memory, &word,
					       LL_MEMORY_WORD(LL_MEMORY_GRANTED(word), LL_MEMORY_USED(word) + units)));
	ll_accounts_note_charge(slot, units, page_now_ns(claim));
	return true;
}

/* Charges units. Returns whether the used units now exceed the grant. */
static bool charge_units(const struct ll_claim *claim, struct ll_page_slot *slot, uint64_t units)
{
	uint64_t word = atomic_load(&slot->memory), used;
	do {
		used = LL_MEMORY_USED(word) + units;
		used = used < LL_MEMORY_UNITS_MAX ? used : LL_MEMORY_UNITS_MAX;
	} while (!atomic_compare_exchange_weak(&slot->memory, &word, LL_MEMORY_WORD(LL_MEMORY_GRANTED(word), used)));
	ll_accounts_note_charge(slot, used - LL_MEMORY_USED(word), page_now_ns(claim));
	return used > LL_MEMORY_GRANTED(word);
}

static void release_units(const struct ll_claim *claim, struct ll_page_slot *slot, uint64_t units)
{
	uint64_t word = atomic_load(&slot->memory), used;
	do
		used = LL_MEMORY_USED(word) - (units < LL_MEMORY_USED(word) ? units : LL_MEMORY_USED(word));
	while (!atomic_compare_exchange_weak(&slot->memory, &word, LL_MEMORY_WORD(LL_MEMORY_GRANTED(word), used)));
	ll_accounts_note_release(slot, LL_MEMORY_USED(word) - used, page_now_ns(claim));
}

/* ---- bytes that are not whole units ----
 *
 * The used units are the sum of all charges, rounded up once. So if two halves of a unit are released, no unit stays
 * used. Nearly all charges are whole units. */

static uint64_t rounded_up(uint64_t odd_bytes)
{
	return odd_bytes != 0;
}

/* Adds to the odd bytes. Returns how many additional units are used then: 0 or 1. */
static uint64_t add_odd(struct ll_claim *claim, uint64_t odd_bytes)
{
	if (!odd_bytes)
		return 0;
	LL_SCOPE_LOCK(&claim->odd_lock);
	uint64_t before = claim->odd_bytes, sum = before + odd_bytes;
	claim->odd_bytes = sum % LL_MEMORY_UNIT;
	return sum / LL_MEMORY_UNIT + rounded_up(claim->odd_bytes) - rounded_up(before);
}

/* Subtracts from the odd bytes. Returns how many units become free: 0 or 1. */
static uint64_t take_units_beyond_grant(struct ll_claim *claim, uint64_t odd_bytes)
{
	if (!odd_bytes)
		return 0;
	LL_SCOPE_LOCK(&claim->odd_lock);
	uint64_t before = claim->odd_bytes;
	bool is_borrowed = odd_bytes > before;
	claim->odd_bytes = before + (is_borrowed ? LL_MEMORY_UNIT : 0) - odd_bytes;
	return is_borrowed + rounded_up(before) - rounded_up(claim->odd_bytes);
}

/* ---- asking for more ---- */

static uint32_t post_want(struct ll_page_slot *slot, uint64_t units)
{
	uint32_t serial = (uint32_t)(atomic_load(&slot->memory_want) >> 32) + 1;
	atomic_store(&slot->memory_want, (uint64_t)serial << 32 | units);
	return serial;
}

/* Ends a request for memory, so that other processes may have the rest that is kept for it. Does nothing if another
 * thread has made a new request. */
static void end_want(struct ll_page_slot *slot, uint32_t serial, uint64_t units)
{
	uint64_t want = (uint64_t)serial << 32 | units;
	atomic_compare_exchange_strong(&slot->memory_want, &want, (uint64_t)serial << 32);
}

static bool is_answered(const struct ll_page_slot *slot, uint32_t serial, int *ret_code)
{
	uint64_t answer = atomic_load(&slot->memory_reply);
	*ret_code = -(int)(uint32_t)answer;
	return answer >> 32 == serial;
}

/* Polls for the reply for a while, because loadlined replies sooner than a sleeping thread wakes. */
static void look_a_while(const struct ll_page_slot *slot, uint32_t count)
{
	uint64_t until_ns = ll_now_ns() + LOOK_NS;
	while (atomic_load_explicit(&slot->wake_count, memory_order_acquire) == count && ll_now_ns() < until_ns)
		;
}

/* Waits for the reply. Returns 0 if the caller must try again, -ENOMEM, -ESTALE or -ETIMEDOUT. want_lock is held. */
static int wait_for_reply(struct ll_claim *claim, uint32_t serial, uint64_t until_ns)
{
	for (;;) {
		struct ll_page_slot *slot = ll_claim_slot(claim);
		if (!slot)
			return -ESTALE;
		uint32_t count = atomic_load(&slot->wake_count);
		int code;
		if (is_answered(slot, serial, &code))
			return code;
		uint64_t now_ns = ll_now_ns(), wake_ns = now_ns + WAKE_AGAIN_NS;
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		look_a_while(slot, count);
		ll_page_sleep(&slot->wake_count, count, wake_ns < until_ns ? wake_ns : until_ns);
		if (ll_now_ns() >= wake_ns)
			ll_claim_wake_daemon(claim);
	}
}

/* Asks for units. The time counts from the call, even if other threads of the process ask before this one. *ret_serial:
 * number of the request; not changed if no request is needed. */
static int request_units(struct ll_claim *claim, uint64_t units, uint64_t until_ns, uint32_t *ret_serial)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&claim->want_lock);
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return -ESTALE;
	if (reserve_granted(claim, slot, units)) { /* another thread has asked meanwhile */
		release_units(claim, slot, units);
		return 0;
	}
	uint32_t serial = *ret_serial = post_want(slot, units);
	ll_claim_wake_daemon(claim);
	uint64_t asked_ns = ll_now_ns();
	int rc = wait_for_reply(claim, serial, until_ns);
	ll_port_note_wait(claim, LL_WAIT_MEMORY, ll_now_ns() - asked_ns);
	if (rc == -ETIMEDOUT)
		post_want(slot, 0);
	return rc;
}

/* Returns whether the bytes fit beside the present use of all processes of the job. If they do not fit, loadlined would
 * ask the other processes for their reserves, but the caller must first give up its own. */
static bool fits_beside(const struct ll_claim *claim, uint64_t bytes, uint64_t *ret_used_bytes)
{
	uint64_t limit_bytes = ll_orders_memory_limit(claim->pages->orders);
	uint64_t used_bytes = limit_bytes ? ll_page_used_bytes(claim->pages->page, claim->card) : 0;
	*ret_used_bytes = used_bytes;
	return !limit_bytes || (used_bytes <= limit_bytes && bytes <= limit_bytes - used_bytes);
}

/* Returns whether the bytes fit the limit. If they do not, checks again after loadlined has noticed all processes that
 * have ended, because their memory becomes free. */
static bool fits_limit(const struct ll_claim *claim, const struct ll_page_slot *slot, uint64_t bytes)
{
	uint64_t used_bytes, own_bytes = LL_MEMORY_USED(atomic_load(&slot->memory)) * LL_MEMORY_UNIT;
	if (fits_beside(claim, bytes, &used_bytes))
		return true;
	if (used_bytes <= own_bytes)
		return false;
	ll_connection_sweep(claim->port->settings);
	return fits_beside(claim, bytes, &used_bytes);
}

int ll_port_request_reserves(struct ll_claim *claim, uint64_t bytes)
{
	uint32_t serial;
	uint64_t units = ll_memory_units(bytes);
	return units > LL_MEMORY_UNITS_MAX ? -ENOMEM : request_units(claim, units, ll_now_ns() + REPLY_NS, &serial);
}

int ll_port_reserve(struct ll_claim *claim, uint64_t bytes)
{
	uint32_t serial = 0; /* number of the request */
	uint64_t units = ll_memory_units(bytes), until_ns = 0;
	for (;;) {
		struct ll_page_slot *slot = ll_claim_slot(claim);
		if (!slot)
			return -ESTALE;
		if (units > LL_MEMORY_UNITS_MAX)
			return -ENOMEM;
		if (reserve_granted(claim, slot, units))
			break;
		if (!fits_limit(claim, slot, bytes))
			return -ENOMEM;
		until_ns = until_ns ? until_ns : ll_now_ns() + REPLY_NS;
		int rc = request_units(claim, units, until_ns, &serial);
		if (rc)
			return rc;
	}
	if (serial)
		end_want(claim->slot, serial, units);
	uint64_t odd_bytes = bytes % LL_MEMORY_UNIT;
	if (odd_bytes && !add_odd(claim, odd_bytes))
		release_units(claim, claim->slot, 1);
	return 0;
}

void ll_port_charge_memory(struct ll_claim *claim, uint64_t bytes)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return;
	uint64_t units = bytes / LL_MEMORY_UNIT + add_odd(claim, bytes % LL_MEMORY_UNIT);
	if (charge_units(claim, slot, units))
		ll_claim_wake_daemon(claim);
}

/* Returns whether the job exceeded its limit when loadlined last checked. */
static bool is_job_over(const struct ll_claim *claim)
{
	uint64_t limit_bytes = ll_orders_memory_limit(claim->pages->orders);
	return limit_bytes && atomic_load_explicit(&claim->orders_card->used_bytes, memory_order_relaxed) > limit_bytes;
}

void ll_port_release(struct ll_claim *claim, uint64_t bytes)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return;
	release_units(claim, slot, bytes / LL_MEMORY_UNIT + take_units_beyond_grant(claim, bytes % LL_MEMORY_UNIT));
	if (is_job_over(claim)) /* then loadlined withdraws the grant of the released memory */
		ll_claim_wake_daemon(claim);
}

/* ---- the reserves of pools ---- */

uint32_t ll_port_is_asked(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	uint32_t question = slot ? atomic_load_explicit(&slot->reserve_asked, memory_order_relaxed) : 0;
	return slot && question != atomic_load_explicit(&slot->reserve_given, memory_order_relaxed) ? question : 0;
}

void ll_port_reply(struct ll_claim *claim, uint32_t question)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return;
	atomic_store(&slot->reserve_given, question);
	ll_claim_wake_daemon(claim);
}

void ll_port_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return;
	atomic_store_explicit(&slot->evictable_bytes, residency->evictable_bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->away_bytes, residency->away_bytes, memory_order_relaxed);
	atomic_store_explicit(&slot->residency, residency->state, memory_order_release);
}
