/*
 * link.h - the inside of this folder: the connection to loadlined, the claims on slots of the page, and the thread that
 * keeps both.
 */
#ifndef LOADLINE_SHIM_LINK_LINK_H
#define LOADLINE_SHIM_LINK_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/message.h"
#include "protocol/page.h"
#include "protocol/words.h"

/* ---- the connection ---- */

/*
 * The process's only connection to loadlined, and the pages that it received over this connection.
 *
 * A program may close descriptors that are not its own, and the next file that it opens may get the same number. So the
 * library checks the socket's inode before each use of the connection. If the connection is gone, the next request
 * connects again. On a new connection the library first asks for the slots that the process has. Otherwise loadlined
 * would assume that the process has become another program (by exec). A forked child does not use the parent's
 * connection and makes its own.
 *
 * Any thread may call these functions. They do not change errno, and they are not
 * cancellation points.
 */

struct ll_err;
struct ll_run_settings;

/* The pages that the job shares with loadlined. They stay mapped until the process ends, because streams wait for words
 * of them. */
struct ll_port_pages {
	struct ll_page *page;
	const struct ll_orders *orders;
	dev_t device;
	ino_t inode;                  /* inode of the page's file */
	struct ll_port_pages *former; /* older pages, if the job was registered again; NULL: none */
};

/* Returns the last pages that loadlined sent; NULL: it has sent none yet. */
struct ll_port_pages *ll_connection_pages(void);

struct ll_slot_request {
	const struct ll_run_settings *settings; /* owned by the caller, must not change */
	const char *uuid;                       /* empty: the request is for the pages and not for a slot */
	uint64_t slot_token;                    /* see struct ll_message_claim */
	unsigned slot;
};

struct ll_slot_grant {
	struct ll_port_pages *pages;
	uint64_t token;
	int64_t ahead_ns; /* the daemon's clock minus the process's clock */
	unsigned slot, card;
};

/*
 * Connects if necessary, and asks for a slot. wait_ns: the longest time to try if no loadlined serves or replies, or if
 * the job is not known yet. Returns -ESTALE if the slot belongs to another process, and -ENOENT if the settings name no
 * place. Other errors: loadlined refused the request, or it cannot be reached.
 */
int ll_connection_claim(const struct ll_slot_request *request, uint64_t wait_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err);

/* Connects if there is no connection to the daemon with this instance number, and asks for the slots of all claims
 * by their tokens. A claim whose slot no longer belongs to this process is refused from then on. Returns the
 * same errors as ll_connection_claim. */
int ll_connection_renew(const struct ll_run_settings *settings, uint64_t instance);

/* Returns whether there is a connection and the other side has not ended. Two system calls. */
bool ll_connection_stands(void);

/* Waits until loadlined has noticed all processes that ended before the call, or does not reply. */
void ll_connection_sweep(const struct ll_run_settings *settings);

/* Opens another connection to loadlined, which the caller owns. No message was sent on it yet. The caller blocks forks.
 * Returns 0 or -errno; -EAGAIN: loadlined is flooded with connections, and the caller may try again. */
int ll_connection_open(const struct ll_run_settings *settings, int *ret_fd);

/* Sends LL_MESSAGE_WAKE or LL_MESSAGE_LEAVE for a slot. Never waits. Returns -errno if the message was not sent. */
int ll_connection_tell(enum ll_message_kind kind, unsigned slot, uint64_t token);

/* ---- the lease of an order ---- */

/*
 * The lease of an order. An order that keeps a process from launching is valid for LL_LEASE_NS. While there
 * is such an order, loadlined writes heartbeats. If the heartbeats stop, no loadlined decides, and programs continue
 * without it. On a busy host loadlined may not run for LL_LEASE_NS. So while the connection is open, a process waits
 * LL_LEASE_PATIENCE times as long.
 */

enum { LL_LEASE_PATIENCE = 4 };

struct ll_lease {
	uint64_t instance;
	uint64_t since_ns; /* last seen heartbeat, or begin of the wait; 0: nothing is held */
	uint32_t beat;
	uint32_t sequence; /* sequence of the order that holds the process */
	bool is_over;
};

/*
 * Call it repeatedly while launches are held. Returns true if the lease is over. This stays true until loadlined writes
 * again, even if nothing is held in between. sequence: the sequence of the order that holds; 0: any order.
 */
static inline bool ll_lease_look(struct ll_lease *lease, const struct ll_orders *orders, uint32_t sequence,
				 bool is_held, uint64_t now_ns)
{
	uint64_t instance = atomic_load_explicit(&orders->instance, memory_order_relaxed);
	uint32_t beat = atomic_load_explicit(&orders->beat, memory_order_relaxed);
	bool is_alive = instance != lease->instance || beat != lease->beat || sequence != lease->sequence;
	if (lease->is_over && !is_alive)
		return true;
	lease->is_over = false;
	if (!is_held) {
		lease->since_ns = 0;
	} else if (!lease->since_ns || is_alive) {
		*lease =
		    (struct ll_lease){.instance = instance, .since_ns = now_ns, .beat = beat, .sequence = sequence};
	} else if (now_ns >= lease->since_ns + LL_LEASE_NS) {
		lease->is_over = now_ns >= lease->since_ns + LL_LEASE_PATIENCE * LL_LEASE_NS || !ll_connection_stands();
	}
	return lease->is_over;
}

/* ---- claims ---- */

/*
 * A claim: the process's data for one of its slots in the job's page.
 *
 * A claim is never freed, because other threads may still read a lost claim. In a forked child the parent's claims are
 * dead.
 */

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

	/* of the thread that sets the time on the card; and when the process was off the card lately */
	struct ll_lease time_lease;
	pthread_mutex_t off_lock;
	struct {
		uint64_t start_ns, end_ns; /* end_ns 0: it still is */
	} off[LL_CLAIM_OFF_TIMES];         /* a ring */
	unsigned off_count;                /* of all times */
	uint64_t off_since_ns;             /* by a call that took it off; 0: it is on */
	/* the number of the last of the times that was judged, and 1; of the last ones how many were judged, and in how
	 * many of them work ended all the same */
	unsigned judged_off, judged, escapes;
	_Atomic uint64_t traced_ns; /* up to when the times come from the trace; 0: there is none */
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

/* Adds the claim to the list of the process, and starts the link thread if it does not run. Without the thread, a
 * process does not get its claims back after loadlined has ended. */
void ll_claims_add(struct ll_claim *claim);

/* Returns the first claim of the process's list. Claims are never removed from the list. */
struct ll_claim *ll_claims_first(void);

/* ---- the thread ---- */

/*
 * The thread of the process that keeps the connection to loadlined open.
 *
 * The thread sleeps on a futex in the orders. If another loadlined serves or the connection is gone, it connects again
 * and asks for the process's slots by their tokens. If the lease is over, it opens the words for which the
 * job's streams wait on the card, because all other threads of the program may be inside the driver. It calls no
 * function of the driver.
 */

/* Makes the thread check at once, because launches are held from now on or the connection is gone. Needs one load while
 * the thread checks often. */
void ll_link_thread_look(void);

/* ---- the work of a card ---- */

/*
 * Counts the card's work for a job in bins of time (struct ll_busy_bins of the page).
 *
 * Several processes of a job may work at the same time. A bin holds at most its own length, so such time counts once.
 * There are short bins for the last 0.3 s, and long bins for work that is reported later.
 */

/*
 * Adds work of the card from start_ns to end_ns. Returns the part that was not counted before for another process of
 * the job. Threads of several processes may call it at the same time.
 */
uint64_t ll_busy_bins_add(struct ll_busy_bins *bins, uint64_t start_ns, uint64_t end_ns);

/*
 * Notes when a card worked for a job (struct ll_work_samples of the page), for the accounts.
 */

/*
 * Notes that the card worked from start_ns to end_ns. Returns the part of that time that no other process of the job
 * has noted: in proportion to the samples that are new, and all of it if it contains no sample. Of time that is further
 * back than the words reach (1.9 s) nothing is noted, and all of it counts. Threads of several processes may call it at
 * the same time.
 */
uint64_t ll_work_samples_add(struct ll_work_samples *samples, uint64_t start_ns, uint64_t end_ns);

/* ---- who serves a place ---- */

/*
 * Checks whether the user who serves a place may serve it.
 *
 * The name of a place contains the user of the job (protocol/place.h), and any user may take a name. A program of the
 * job may have changed its user, for example by gosu or su. So loadlined is trusted if it runs as the user of the name
 * or as the user of this process. For the system's place see ll_place_check_system.
 */

/* Checks the other side of the connected socket. Returns -EPERM if it belongs to another user; *ret_uid: that user, as
 * seen by this process. */
int ll_place_uid_check(const char *place, int fd, uid_t *ret_uid);

#endif
