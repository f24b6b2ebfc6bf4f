#include "shim/link/link_thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/guest_thread.h"
#include "shim/link/claim.h"

enum { STACK_BYTES = 128 * 1024 };

#define CALM_NS (1000 * LL_NS_PER_MS)
/* Time between two tries to connect; after TRIES_FAST of them: CALM_NS. */
#define RETRY_NS (10 * LL_NS_PER_MS)
enum { TRIES_FAST = 500 };

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* guards adding */
	_Atomic bool is_started;
	_Atomic bool is_asked;    /* the thread must check at once */
	_Atomic bool is_watching; /* the thread checks every LL_BEAT_NS */
	_Atomic(struct ll_claim *) claims;
	struct ll_fork_item fork;
} thread = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the claims of this process ---- */

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&thread.lock, NULL);
	for (struct ll_claim *claim = atomic_load(&thread.claims); claim; claim = claim->next)
		atomic_store(&claim->slot, NULL);
	atomic_store(&thread.claims, NULL);
	atomic_store(&thread.is_started, false);
	atomic_store(&thread.is_watching, false);
}

static void follow_forks(void)
{
	thread.fork.in_child = forget_in_child;
	ll_fork_add(&thread.fork);
}

struct ll_claim *ll_claims_first(void)
{
	return atomic_load(&thread.claims);
}

void ll_claims_add(struct ll_claim *claim)
{
	pthread_once(&thread.once, follow_forks);
	ll_fork_block(); /* so that the list of a forked child has every claim */
	pthread_mutex_lock(&thread.lock);
	claim->next = atomic_load(&thread.claims);
	atomic_store(&thread.claims, claim);
	pthread_mutex_unlock(&thread.lock);
	ll_fork_unblock();
	ll_link_thread_start();
	ll_link_thread_look(); /* show_life */
}

/* ---- WAKE messages ---- */

static void send_wake(struct ll_claim *claim)
{
	bool is_sent = ll_connection_tell(LL_MESSAGE_WAKE, claim->index, claim->token) == 0;
	atomic_store(&claim->is_wake_due, !is_sent);
	if (!is_sent)
		ll_link_thread_look();
}

void ll_claim_wake_daemon(struct ll_claim *claim)
{
	if (ll_claim_slot(claim))
		send_wake(claim);
}

void ll_claim_wake_daemon_if_due(struct ll_claim *claim)
{
	if (atomic_load_explicit(&claim->is_wake_due, memory_order_relaxed) && ll_claim_slot(claim))
		send_wake(claim);
}

/* ---- the connection ---- */

/* Connects again and asks for the slots. Returns false if this is not possible now. */
static bool renew_connection(const struct ll_orders *orders)
{
	struct ll_claim *first = ll_claims_first();
	int rc =
	    ll_connection_renew(first->port->settings, atomic_load_explicit(&orders->instance, memory_order_relaxed));
	for (struct ll_claim *claim = first; claim && rc == 0; claim = claim->next)
		ll_claim_wake_daemon_if_due(claim);
	return rc == 0;
}

/* ---- the lease ---- */

static bool is_card_shut(const struct ll_claim *claim)
{
	return !(atomic_load_explicit(claim->card_word, memory_order_relaxed) & LL_VISIT_WORD_OPEN);
}

/* Returns whether the claim's launches wait or may have to wait. */
static bool is_held(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	return slot &&
	       (is_card_shut(claim) || (atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed) &&
					atomic_load_explicit(&slot->gate, memory_order_relaxed) == LL_GATE_SHUT));
}

static bool is_any_held(void)
{
	for (const struct ll_claim *claim = ll_claims_first(); claim; claim = claim->next) {
		if (is_held(claim))
			return true;
	}
	return false;
}

/* Opens all words on the card, so that streams continue, and wakes the threads that wait. */
static void open_all(void)
{
	for (struct ll_claim *claim = ll_claims_first(); claim; claim = claim->next) {
		struct ll_page_slot *slot = ll_claim_slot(claim);
		if (!slot || !is_held(claim))
			continue;
		uint32_t word = atomic_load(claim->card_word);
		if (!(word & LL_VISIT_WORD_OPEN)) /* an increment opens it: a shut word is even, an open one is odd */
			atomic_compare_exchange_strong(claim->card_word, &word, word + 1);
		ll_page_wake(&slot->wake_count);
	}
}

/* ---- the life of the program ---- */

/* What the kernel reads when the thread ends. It marks the word at the node's address plus the offset, which is in the
 * slot of one of the process's claims. */
static struct {
	struct robust_list_head head;
	struct robust_list node;
	_Atomic uint32_t *word; /* NULL: none */
	uint32_t thread;
} life;

static void begin_life(void)
{
	life.word = NULL;
	life.head.list.next = &life.head.list;
	life.head.list_op_pending = NULL;
	life.thread = (uint32_t)syscall(SYS_gettid);
	/* This thread has no robust lock of the C library. Where the kernel refuses, the words say nothing. */
	if (syscall(SYS_set_robust_list, &life.head, sizeof life.head) != 0)
		life.thread = 0;
}

/* By this loadlined sees that the process has executed another program, which has none of its memory on a card. */
static void show_life(void)
{
	struct ll_page_slot *slot = NULL;
	for (const struct ll_claim *claim = ll_claims_first(); claim && !slot; claim = claim->next)
		slot = ll_claim_slot(claim);
	if (!life.thread || !slot || (life.word == &slot->life && atomic_load(&slot->life) == life.thread))
		return;
	life.head.list.next = &life.head.list; /* the slot before may be another process's now */
	life.head.futex_offset = (long)((uintptr_t)&slot->life - (uintptr_t)&life.node);
	life.node.next = &life.head.list;
	life.word = &slot->life;
	atomic_store(life.word, life.thread);
	atomic_signal_fence(memory_order_seq_cst);
	life.head.list.next = &life.node;
}

/* ---- the thread ---- */

void ll_link_thread_look(void)
{
	const struct ll_port_pages *pages = ll_connection_pages();
	if (!pages || atomic_load_explicit(&thread.is_watching, memory_order_relaxed))
		return;
	int code = errno;
	atomic_store(&thread.is_asked, true);
	/* This process must not write the orders, so the count does not change. Each sleeper on the count makes one
	 * needless check. */
	syscall(SYS_futex, &pages->orders->wake_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = code;
}

static void *link_main(void *arg)
{
	struct ll_lease lease = {.since_ns = 0};
	unsigned tries = 0;
	pthread_setname_np(pthread_self(), "ll-link");
	prctl(PR_SET_TIMERSLACK, 1);
	begin_life();
	for (;;) {
		const struct ll_orders *orders = ll_connection_pages()->orders;
		uint32_t count = atomic_load(&orders->wake_count);
		atomic_store(&thread.is_asked, false);
		bool has_failed = !renew_connection(orders);
		tries = has_failed ? tries + 1 : 0;
		show_life();
		uint64_t now_ns = ll_now_ns();
		bool is_watching = is_any_held();
		atomic_store(&thread.is_watching, is_watching);
		if (ll_lease_look(&lease, orders, 0, is_watching, now_ns) && is_watching)
			open_all();
		uint64_t pause_ns = is_watching ? LL_BEAT_NS : CALM_NS;
		if (has_failed && tries < TRIES_FAST)
			pause_ns = RETRY_NS;
		if (!atomic_load(&thread.is_asked))
			ll_page_sleep(&orders->wake_count, count, now_ns + pause_ns);
	}
	return arg;
}

void ll_link_thread_start(void)
{
	pthread_mutex_lock(&thread.lock);
	if (!atomic_load(&thread.is_started))
		atomic_store(&thread.is_started, ll_guest_thread_start(STACK_BYTES, link_main, NULL, NULL) == 0);
	pthread_mutex_unlock(&thread.lock);
}
