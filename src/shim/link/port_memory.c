/* Memory of the port (port.h): what a process reserves within its grant, and how it asks for more. */
#include <errno.h>

#include "base/clock.h"
#include "base/scope.h"
#include "protocol/accounts.h"
#include "shim/link/claim.h"
#include "shim/link/port.h"

#define REPLY_NS (5000 * LL_NS_PER_MS)
/* WAKE is sent again after this time: another loadlined may have got the last one. */
#define WAKE_AGAIN_NS (100 * LL_NS_PER_MS)
/* An answer takes some 10 us where loadlined need not wait for a processor, and some 100 where that was asleep. */
#define LOOK_NS (150 * UINT64_C(1000))

/* ---- the word ---- */

/* What this process may use at most. A limit may have become lower than what was granted before. */
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

/* Returns whether more is used now than was granted. */
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

/* ---- bytes that are no whole units ----
 *
 * The units that are used are those of the sum of all charges, rounded up once. So two halves of a unit that are
 * released together leave nothing. Nearly all charges are whole units.
 */

static uint64_t rounded_up(uint64_t odd_bytes)
{
	return odd_bytes != 0;
}

/* Adds to what is odd. Returns how many units that takes beside the whole ones: 0 or 1. */
static uint64_t add_odd(struct ll_claim *claim, uint64_t odd_bytes)
{
	if (!odd_bytes)
		return 0;
	LL_SCOPE_LOCK(&claim->odd_lock);
	uint64_t before = claim->odd_bytes, sum = before + odd_bytes;
	claim->odd_bytes = sum % LL_MEMORY_UNIT;
	return sum / LL_MEMORY_UNIT + rounded_up(claim->odd_bytes) - rounded_up(before);
}

/* The contrary: how many units become free. */
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

/* It has what it wanted: others may have what is kept for it beyond that. Another thread may want something by now. */
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

/* loadlined answers sooner than a thread that sleeps wakes. */
static void look_a_while(const struct ll_page_slot *slot, uint32_t count)
{
	uint64_t until_ns = ll_now_ns() + LOOK_NS;
	while (atomic_load_explicit(&slot->wake_count, memory_order_acquire) == count && ll_now_ns() < until_ns)
		;
}

/* 0: try again. -ENOMEM, -ESTALE, -ETIMEDOUT. The want_lock is held. */
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

/* The time counts from the call, also if other threads of the process want memory before this one. *ret_serial: of the
 * want; left alone if it need not ask. */
static int request_units(struct ll_claim *claim, uint64_t units, uint64_t until_ns, uint32_t *ret_serial)
{
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&claim->want_lock);
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return -ESTALE;
	if (reserve_granted(claim, slot, units)) { /* another thread asked meanwhile */
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

/* Whether it fits beside what all processes of the job use now. If it does not, loadlined would ask them for their
 * reserves, and the caller has some of its own to give up before. What ended processes had comes back: loadlined
 * answers when it has. */
static bool fits_beside(const struct ll_claim *claim, uint64_t bytes, uint64_t *ret_used_bytes)
{
	uint64_t limit_bytes = ll_orders_memory_limit(claim->pages->orders);
	uint64_t used_bytes = limit_bytes ? ll_page_used_bytes(claim->pages->page, claim->card) : 0;
	*ret_used_bytes = used_bytes;
	return !limit_bytes || (used_bytes <= limit_bytes && bytes <= limit_bytes - used_bytes);
}

/* Another process may have ended a moment ago. */
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
	uint32_t serial = 0; /* of what it asked for */
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

/* Whether the job had more than its limit, when loadlined last looked. */
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
	if (is_job_over(claim)) /* then what was granted for it is taken back */
		ll_claim_wake_daemon(claim);
}

/* ---- what the pools keep in reserve ---- */

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
