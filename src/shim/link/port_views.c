/* The part of the port (port.h) that reads the job's page for programs that ask about memory. */
#include "base/clock.h"
#include "base/process_id.h"
#include "shim/link/claim.h"
#include "shim/link/port.h"

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

static uint64_t page_now_ns(uint64_t now_ns)
{
	const struct ll_claim *claim = ll_claims_first();
	return claim ? ll_claim_page_ns(claim, now_ns) : now_ns;
}

void ll_port_note_lost(struct ll_port *port, uint64_t now_ns)
{
	struct ll_page_card *card = find_page_card(port);
	uint64_t page_ns = page_now_ns(now_ns);
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
