/*
 * claim.h - what this process keeps of its slots in the job's page.
 *
 * A claim is never freed: other threads may still look at one that was lost. In a forked child the parent's claims are
 * dead.
 *
 * Private to this folder.
 */
#ifndef LOADLINE_SHIM_LINK_CLAIM_H
#define LOADLINE_SHIM_LINK_CLAIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/page.h"
#include "protocol/words.h"
#include "shim/link/connection.h"
#include "shim/link/lease.h"

struct ll_port {
	char uuid[LL_PAGE_UUID_SIZE];
	const struct ll_run_settings *settings;
	/* the card's index in these pages, once it was found there */
	_Atomic(struct ll_port_pages *) pages;
	_Atomic unsigned card;
};

struct ll_claim {
	struct ll_claim *next; /* of all of this process */
	const struct ll_port *port;
	struct ll_port_pages *pages;
	_Atomic(struct ll_page_slot *) slot; /* NULL in a forked child: the claim is the parent's */
	const struct ll_orders_slot *order;
	_Atomic uint32_t *card_word;
	struct ll_page_card *page_card;
	const struct ll_orders_card *orders_card;
	unsigned index, card; /* of the slot; of the card in the page */
	uint64_t token;
	int64_t ahead_ns;         /* of the clock of the page */
	_Atomic bool is_refused;  /* loadlined says that the slot is not this process's any more */
	_Atomic bool is_wake_due; /* the last WAKE message was not sent */

	pthread_mutex_t odd_lock;  /* guards odd_bytes */
	uint64_t odd_bytes;        /* what the charges are beyond whole units */
	pthread_mutex_t want_lock; /* one thread at a time wants more memory */

	/* of launches; under the caller's lock (port.h) */
	uint32_t posts;     /* how many there were: the number of the last one */
	uint64_t posted_ns; /* when that was */
	/* the post that said that the process wants the card; before the first, 1: orders that were never written, or
	   for who had the slot before, are no answer */
	_Atomic uint32_t want_post;
	struct ll_lease lease;
	_Atomic bool is_over;  /* the lease is over: nobody decides */
	bool was_paused;       /* the daemon has said LL_ORDER_PAUSED, and has not taken it back */
	uint32_t posted_flags; /* of the last post */
	uint32_t posted_launches;
};

/* Returns the slot while it is the claim's; NULL: it was lost, or this is a forked child. */
static inline struct ll_page_slot *ll_claim_slot(const struct ll_claim *claim)
{
	struct ll_page_slot *slot = atomic_load_explicit(&claim->slot, memory_order_relaxed);
	bool is_ours = slot && atomic_load_explicit(&slot->token, memory_order_relaxed) == claim->token;
	return is_ours && !atomic_load_explicit(&claim->is_refused, memory_order_relaxed) ? slot : NULL;
}

/* Times of this process and of the page. 0 is "never" in both. */
static inline uint64_t ll_claim_page_ns(const struct ll_claim *claim, uint64_t own_ns)
{
	return own_ns ? own_ns + (uint64_t)claim->ahead_ns : 0;
}

static inline uint64_t ll_claim_own_ns(const struct ll_claim *claim, uint64_t page_ns)
{
	return page_ns ? page_ns - (uint64_t)claim->ahead_ns : 0;
}

/* Sends WAKE for the slot. If that fails, the message is due, and the link's thread looks for the cause. */
void ll_claim_wake_daemon(struct ll_claim *claim);

/* Sends WAKE again if the last one could not be sent. */
void ll_claim_wake_daemon_if_due(struct ll_claim *claim);

/* Adds it to those of the process, and starts the link's thread if there is none. */
void ll_claims_add(struct ll_claim *claim);

/* The first of all claims of this process; they are only added to. */
struct ll_claim *ll_claims_first(void);

#endif
