/* Opens cards and takes claims; reserves memory and reads what the job uses (port.h). */
#include "shim/link/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "protocol/accounts.h"
#include "shim/link/link.h"

#define READ_WAIT_NS (500 * LL_NS_PER_MS)

int ll_port_open(const struct ll_run_settings *settings, const char *uuid, bool is_to_claim, struct ll_port **ret_port,
		 struct ll_err *err)
{
	struct ll_slot_grant grant;
	struct ll_slot_request request = {.settings = settings, .uuid = ""};
	if (!is_to_claim && !ll_connection_pages() && ll_connection_claim(&request, READ_WAIT_NS, &grant, NULL))
		return ll_err_set(err, -ENOENT, "no loadlined answers for this job");
	struct ll_port *port = calloc(1, sizeof *port);
	if (!port)
		return ll_err_set(err, -ENOMEM, "no memory");
	snprintf(port->uuid, sizeof port->uuid, "%s", uuid);
	port->settings = settings;
	*ret_port = port;
	return 0;
}

void ll_port_close(struct ll_port *port)
{
	free(port);
}

int ll_port_connect(const struct ll_port *port, int *ret_fd)
{
	return *port->settings->place ? ll_connection_open(port->settings, ret_fd) : -ENOENT;
}

int ll_port_claim(struct ll_port *port, uint64_t wait_ns, struct ll_claim **ret_claim, struct ll_err *err)
{
	struct ll_slot_grant grant;
	struct ll_slot_request request = {.settings = port->settings, .uuid = port->uuid};
	struct ll_claim *claim = calloc(1, sizeof *claim);
	if (!claim)
		return ll_err_set(err, -ENOMEM, "no memory");
	int rc = ll_connection_claim(&request, wait_ns, &grant, err);
	if (rc) {
		free(claim);
		return rc;
	}
	struct ll_port_pages *pages = grant.pages;
	*claim = (struct ll_claim){
	    .port = port,
	    .pages = pages,
	    .slot = &pages->page->slots[grant.slot],
	    .order = &pages->orders->slots[grant.slot],
	    .card_word = &pages->page->card_words[grant.card],
	    .page_card = &pages->page->cards[grant.card],
	    .orders_card = &pages->orders->cards[grant.card],
	    .index = grant.slot,
	    .card = grant.card,
	    .token = grant.token,
	    .ahead_ns = grant.ahead_ns,
	    .want_post = 1,
	};
	pthread_mutex_init(&claim->odd_lock, NULL);
	pthread_mutex_init(&claim->off_lock, NULL);
	pthread_mutex_init(&claim->want_lock, NULL);
	atomic_store(&claim->slot->state, LL_CLAIM_RUNNING);
	ll_claims_add(claim);
	*ret_claim = claim;
	return 0;
}

void ll_port_leave(struct ll_claim *claim)
{
	if (!ll_claim_slot(claim))
		return;
	atomic_store(&claim->is_refused, true);
	ll_connection_tell(LL_MESSAGE_RELEASE, claim->index, claim->token);
}

bool ll_port_is_lost(const struct ll_claim *claim)
{
	return !ll_claim_slot(claim);
}

int ll_port_beat(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return atomic_load(&claim->slot) ? -ESTALE : -ECHILD;
	atomic_store_explicit(&slot->posted_ns, ll_claim_page_ns(claim, now_ns), memory_order_relaxed);
	ll_claim_wake_daemon_if_due(claim);
	return 0;
}

unsigned ll_port_index(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	unsigned number = slot ? atomic_load_explicit(&slot->number, memory_order_relaxed) : 0;
	return number ? number - 1 : claim->index;
}

void ll_port_set_note(struct ll_claim *claim, const char *note)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot)
		ll_page_write_note(slot, note);
}

/* ---- names ---- */

struct ll_port_name ll_port_name_of(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return (struct ll_port_name){.slot = claim->index};
	return (struct ll_port_name){
	    .token = claim->token,
	    .namespaces = atomic_load_explicit(&slot->namespaces, memory_order_relaxed),
	    .start_ticks = atomic_load_explicit(&slot->start_ticks, memory_order_relaxed),
	    .slot = claim->index,
	    .pid = (unsigned)atomic_load_explicit(&slot->pid, memory_order_relaxed),
	};
}

bool ll_port_has_name(const struct ll_port *port, const struct ll_port_name *name)
{
	(void)port;
	const struct ll_port_pages *pages = ll_connection_pages();
	return name->token && pages && pages->page->slots[name->slot % LL_PAGE_SLOTS].token == name->token;
}

bool ll_port_is_gone(const struct ll_port_name *name)
{
	struct ll_process_id id = {
	    .pid = (pid_t)name->pid, .start_ticks = name->start_ticks, .namespaces = name->namespaces};
	int code = errno;
	bool is_gone = ll_process_is_gone(&id, ll_process_namespaces());
	errno = code;
	return is_gone;
}

/* ---- the job's page, for programs that ask about memory ---- */

/* A report of a process without a claim counts for this time. */
#define LOST_FRESH_NS (3 * LL_NS_PER_S)

/* Returns the card's index in the pages; LL_PAGE_CARDS: no process of the job has used it. */
static unsigned find_card(struct ll_port *port, struct ll_port_pages *pages)
{
	if (!pages)
		return LL_PAGE_CARDS;
	if (atomic_load(&port->pages) == pages)
		return atomic_load(&port->card);
	unsigned card = ll_orders_find_card(pages->orders, port->uuid);
	if (card < LL_PAGE_CARDS) {
		atomic_store(&port->card, card);
		atomic_store(&port->pages, pages);
	}
	return card;
}

/* Returns the used bytes of the job. loadlined writes the leaving memory before it gives the slots of that memory to
 * others. So the function reads the slots first; then no memory is missed. */
static uint64_t read_used(const struct ll_port_pages *pages, unsigned card)
{
	uint64_t used_bytes = ll_page_used_bytes(pages->page, card);
	return used_bytes + atomic_load(&pages->orders->cards[card].leaving_bytes);
}

void ll_port_read_memory(const struct ll_claim *claim, struct ll_memory_view *ret_view)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	uint64_t own_units = slot ? LL_MEMORY_USED(atomic_load_explicit(&slot->memory, memory_order_relaxed)) : 0;
	*ret_view = (struct ll_memory_view){.limit_bytes = ll_orders_memory_limit(claim->pages->orders),
					    .used_bytes = read_used(claim->pages, claim->card),
					    .own_bytes = own_units * LL_MEMORY_UNIT};
}

bool ll_port_read_job(struct ll_port *port, struct ll_memory_view *ret_view)
{
	struct ll_port_pages *pages = ll_connection_pages();
	if (!pages)
		return false;
	unsigned card = find_card(port, pages);
	*ret_view = (struct ll_memory_view){.limit_bytes = ll_orders_memory_limit(pages->orders),
					    .used_bytes = card < LL_PAGE_CARDS ? read_used(pages, card) : 0};
	return true;
}

bool ll_port_read_limit(struct ll_port *port, uint64_t *ret_bytes)
{
	(void)port;
	struct ll_port_pages *pages = ll_connection_pages();
	if (pages)
		*ret_bytes = ll_orders_memory_limit(pages->orders);
	return pages;
}

size_t ll_port_list_processes(struct ll_port *port, struct ll_port_process *processes, size_t capacity)
{
	struct ll_port_pages *pages = ll_connection_pages();
	unsigned card = find_card(port, pages);
	uint64_t namespaces = ll_process_namespaces();
	size_t count = 0;
	unsigned end = card < LL_PAGE_CARDS ? ll_page_slot_end(pages->page) : 0;
	for (unsigned i = 0; i < end; i++) {
		const struct ll_page_slot *slot = &pages->page->slots[i];
		if (!atomic_load(&slot->token) || slot->card != card || slot->namespaces != namespaces)
			continue;
		if (count < capacity)
			processes[count] = (struct ll_port_process){
			    .pid = (unsigned)slot->pid, .used_bytes = LL_MEMORY_USED(slot->memory) * LL_MEMORY_UNIT};
		count++;
	}
	return count;
}

/* All jobs share the time of the last death. Only the clock may differ. */
uint64_t ll_port_death_ns(struct ll_port *port)
{
	struct ll_port_pages *pages = ll_connection_pages();
	unsigned card = find_card(port, pages);
	const struct ll_claim *claim = ll_claims_first();
	uint64_t death_ns = card < LL_PAGE_CARDS ? atomic_load(&pages->orders->cards[card].death_ns) : 0;
	return claim ? ll_claim_own_ns(claim, death_ns) : death_ns;
}

uint64_t ll_port_sweep(struct ll_port *port)
{
	ll_connection_sweep(port->settings);
	return ll_port_death_ns(port);
}

/* ---- processes without a claim ---- */

static struct ll_page_card *find_page_card(struct ll_port *port)
{
	struct ll_port_pages *pages = ll_connection_pages();
	unsigned card = find_card(port, pages);
	return card < LL_PAGE_CARDS ? &pages->page->cards[card] : NULL;
}

void ll_port_note_lost(struct ll_port *port, uint64_t now_ns)
{
	struct ll_page_card *card = find_page_card(port);
	const struct ll_claim *claim = ll_claims_first();
	uint64_t page_ns = claim ? ll_claim_page_ns(claim, now_ns) : now_ns;
	if (!card)
		return;
	if (page_ns - atomic_load(&card->lost_seen_ns) >= LOST_FRESH_NS)
		atomic_store(&card->lost_since_ns, page_ns);
	atomic_store(&card->lost_seen_ns, page_ns);
}

void ll_port_note_had(struct ll_port *port)
{
	struct ll_page_card *card = find_page_card(port);
	if (card)
		atomic_store(&card->lost_seen_ns, 0);
}

/* ---- memory: a process reserves within its grant, and asks loadlined for a larger one ---- */

#define MEMORY_REPLY_NS (5000 * LL_NS_PER_MS)
/* WAKE is sent again after this time, because the last one may have gone to a former loadlined. */
#define WAKE_AGAIN_NS (100 * LL_NS_PER_MS)
/* How long a thread polls for a reply. A reply takes some 10 us if loadlined need not wait for a processor, and some
 * 100 us if the processor was asleep. */
#define LOOK_NS (150 * UINT64_C(1000))

/* ---- the word ---- */

static uint64_t page_now_ns(const struct ll_claim *claim)
{
	return ll_claim_page_ns(claim, ll_now_ns());
}

static bool reserve_granted(const struct ll_claim *claim, struct ll_page_slot *slot, uint64_t units)
{
	uint64_t word = atomic_load(&slot->memory);
	do {
		uint64_t limit_bytes = ll_orders_memory_limit(claim->pages->orders);
		uint64_t granted = LL_MEMORY_GRANTED(word), limit = limit_bytes / LL_MEMORY_UNIT;
		if (LL_MEMORY_USED(word) + units > (limit_bytes && limit < granted ? limit : granted))
			return false; /* the limit may have become lower than the grant */
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

/* Adds to the odd bytes. Returns how many additional units are used then: 0 or 1. */
static uint64_t add_odd(struct ll_claim *claim, uint64_t odd_bytes)
{
	if (!odd_bytes)
		return 0;
	LL_SCOPE_LOCK(&claim->odd_lock);
	uint64_t before = claim->odd_bytes, sum = before + odd_bytes;
	claim->odd_bytes = sum % LL_MEMORY_UNIT;
	return sum / LL_MEMORY_UNIT + (claim->odd_bytes != 0) - (before != 0);
}

/* Subtracts from the odd bytes. Returns how many units become free: 0 or 1. */
static uint64_t take_odd(struct ll_claim *claim, uint64_t odd_bytes)
{
	if (!odd_bytes)
		return 0;
	LL_SCOPE_LOCK(&claim->odd_lock);
	uint64_t before = claim->odd_bytes;
	bool is_borrowed = odd_bytes > before;
	claim->odd_bytes = before + (is_borrowed ? LL_MEMORY_UNIT : 0) - odd_bytes;
	return (uint64_t)is_borrowed + (before != 0) - (claim->odd_bytes != 0);
}

/* ---- asking for more ---- */

static uint32_t post_want(struct ll_page_slot *slot, uint64_t units)
{
	uint32_t serial = (uint32_t)(atomic_load(&slot->memory_want) >> 32) + 1;
	atomic_store(&slot->memory_want, (uint64_t)serial << 32 | units);
	return serial;
}

/* Waits for the reply. Returns 0 if the caller must try again, -ENOMEM, -ESTALE or -ETIMEDOUT. want_lock is held. */
static int wait_for_reply(struct ll_claim *claim, uint32_t serial, uint64_t until_ns)
{
	for (;;) {
		struct ll_page_slot *slot = ll_claim_slot(claim);
		if (!slot)
			return -ESTALE;
		uint32_t count = atomic_load(&slot->wake_count);
		uint64_t answer = atomic_load(&slot->memory_reply);
		if (answer >> 32 == serial)
			return -(int)(uint32_t)answer;
		uint64_t now_ns = ll_now_ns(), wake_ns = now_ns + WAKE_AGAIN_NS;
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		/* loadlined replies sooner than a sleeping thread wakes */
		while (atomic_load_explicit(&slot->wake_count, memory_order_acquire) == count &&
		       ll_now_ns() < now_ns + LOOK_NS)
			;
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
	return units > LL_MEMORY_UNITS_MAX ? -ENOMEM
					   : request_units(claim, units, ll_now_ns() + MEMORY_REPLY_NS, &serial);
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
		until_ns = until_ns ? until_ns : ll_now_ns() + MEMORY_REPLY_NS;
		int rc = request_units(claim, units, until_ns, &serial);
		if (rc)
			return rc;
	}
	if (serial) {
		/* Other processes may have the rest that is kept for this request. Another thread may have made a new
		 * request: it stays. */
		uint64_t want = (uint64_t)serial << 32 | units;
		struct ll_page_slot *slot = claim->slot;
		atomic_compare_exchange_strong(&slot->memory_want, &want, (uint64_t)serial << 32);
	}
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

void ll_port_release(struct ll_claim *claim, uint64_t bytes)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return;
	release_units(claim, slot, bytes / LL_MEMORY_UNIT + take_odd(claim, bytes % LL_MEMORY_UNIT));
	uint64_t limit_bytes = ll_orders_memory_limit(claim->pages->orders);
	/* If the job was over its limit, loadlined withdraws the grant of the released memory. */
	if (limit_bytes && atomic_load_explicit(&claim->orders_card->used_bytes, memory_order_relaxed) > limit_bytes)
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
