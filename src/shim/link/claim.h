/*
 * claim.h - a claim: the process's data for one of its slots in the job's page.
 *
 * A claim is never freed, because other threads may still read a lost claim. In a forked child the parent's claims are
 * dead.
 *
 * Only files of this folder include it.
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

/* Beside a flood a kernel of 10 s is off the card 4500 times. */
enum { LL_CLAIM_OFF_TIMES = 8192 };

struct ll_port {
	char uuid[LL_PAGE_UUID_SIZE];
	const struct ll_run_settings *settings;
	/* pages in which the card's index was found */
	_Atomic(struct ll_port_pages *) pages;
	_Atomic unsigned card;
};

struct ll_claim {
	struct ll_claim *next; /* list of all claims of this process */
	const struct ll_port *port;
	struct ll_port_pages *pages;
	_Atomic(struct ll_page_slot *) slot; /* NULL in a forked child, because the claim belongs to the parent */
	const struct ll_orders_slot *order;
	_Atomic uint32_t *card_word;
	struct ll_page_card *page_card;
	const struct ll_orders_card *orders_card;
	unsigned index, card; /* index of the slot; index of the card in the page */
	uint64_t token;
	int64_t ahead_ns;         /* the page's clock minus the process's clock */
	_Atomic bool is_refused;  /* loadlined has reported that the slot no longer belongs to this process */
	_Atomic bool is_wake_due; /* the last WAKE message was not sent */

	pthread_mutex_t odd_lock;  /* guards odd_bytes */
	uint64_t odd_bytes;        /* the part of the charges that is no whole unit */
	pthread_mutex_t want_lock; /* allows one thread at a time to ask for more memory */

	/* data of launches, under the caller's lock (port.h) */
	uint32_t posts;     /* number of the last post */
	uint64_t posted_ns; /* time of the last post */
	/* number of the post that said that the process wants the card. It is 1 before the first post, so that orders
	 * that were never written, or were written for the slot's former owner, do not count as a reply */
	_Atomic uint32_t want_post;
	struct ll_lease lease;
	_Atomic bool is_over;  /* the lease has ended, so no loadlined decides about launches */
	bool was_paused;       /* the last order had LL_ORDER_PAUSED */
	uint32_t posted_flags; /* flags of the last post */
	uint32_t posted_launches;

	/* port_time.c: of the thread that sets the time on the card; and when the process was off the card lately */
	struct ll_lease time_lease;
	pthread_mutex_t off_lock;
	struct {
		uint64_t start_ns, end_ns; /* end_ns 0: it still is */
	} off[LL_CLAIM_OFF_TIMES];         /* a ring */
	unsigned off_count;                /* of all times */
	uint64_t off_since_ns;             /* by a call that took it off; 0: it is on */
	_Atomic uint64_t traced_ns;        /* up to when the times come from the trace; 0: there is none */
};

/* Returns the slot of the claim; NULL: the claim was lost, or this is a forked child. */
static inline struct ll_page_slot *ll_claim_slot(const struct ll_claim *claim)
{
	struct ll_page_slot *slot = atomic_load_explicit(&claim->slot, memory_order_relaxed);
	bool is_ours = slot && atomic_load_explicit(&slot->token, memory_order_relaxed) == claim->token;
	return is_ours && !atomic_load_explicit(&claim->is_refused, memory_order_relaxed) ? slot : NULL;
}

/* Convert times between the process's clock and the page's clock. 0 means "never" in both. */
static inline uint64_t ll_claim_page_ns(const struct ll_claim *claim, uint64_t own_ns)
{
	return own_ns ? own_ns + (uint64_t)claim->ahead_ns : 0;
}

static inline uint64_t ll_claim_own_ns(const struct ll_claim *claim, uint64_t page_ns)
{
	return page_ns ? page_ns - (uint64_t)claim->ahead_ns : 0;
}

/* Sends WAKE for the slot. If that fails, the message is due, and the link thread checks the connection. */
void ll_claim_wake_daemon(struct ll_claim *claim);

/* Sends WAKE again if the last one could not be sent. */
void ll_claim_wake_daemon_if_due(struct ll_claim *claim);

/* Adds the claim to the list of the process, and starts the link thread if it does not run. */
void ll_claims_add(struct ll_claim *claim);

/* Returns the first claim of the process's list. Claims are never removed from the list. */
struct ll_claim *ll_claims_first(void);

#endif
