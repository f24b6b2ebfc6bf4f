#include "shim/memory/growth.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/fork.h"
#include "shim/memory/charge.h"

enum { CARDS = 64 };

/* The longest wait for a closed card. After it a thread continues, because only a call of the driver that hangs takes
 * longer. */
#define ENTER_MOST_NS (2 * LL_NS_PER_S)

struct group {
	unsigned calls;
	bool is_closed;
};

static struct card {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned waiting;
	int cancel_state; /* cancel state that the thread with the lock had before it locked */
	struct group groups[LL_GROWTH_KINDS];
} cards[CARDS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_fork_item fork_item;
static _Thread_local unsigned own_calls[LL_GROWTH_KINDS] __attribute__((tls_model("initial-exec")));

static void init_cards(void)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	for (size_t i = 0; i < CARDS; i++) {
		cards[i] = (struct card){.waiting = 0};
		pthread_mutex_init(&cards[i].lock, NULL);
		pthread_cond_init(&cards[i].changed, &monotonic);
	}
	pthread_condattr_destroy(&monotonic);
}

/* Resets all counts, because the parent's calls do not end in the child. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	init_cards();
	for (int i = 0; i < LL_GROWTH_KINDS; i++)
		own_calls[i] = 0;
}

static void init_once(void)
{
	init_cards();
	fork_item.in_child = forget_in_child;
	ll_fork_add(&fork_item);
}

static struct card *card_of(const struct ll_device_state *dev)
{
	return &cards[dev->device];
}

void ll_growth_lock(const struct ll_device_state *dev)
{
	int cancel_state;
	pthread_once(&once, init_once);
	struct card *card = card_of(dev);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&card->lock);
	card->cancel_state = cancel_state;
}

void ll_growth_unlock(const struct ll_device_state *dev)
{
	struct card *card = card_of(dev);
	int cancel_state = card->cancel_state;
	pthread_mutex_unlock(&card->lock);
	pthread_setcancelstate(cancel_state, NULL);
}

/* ---- calls in the driver ---- */

/* Releases the lock until another thread calls tell_change. Returns false if until_ns (CLOCK_MONOTONIC) is reached
 * first. */
static bool wait_for_change(struct card *card, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / LL_NS_PER_S), .tv_nsec = (long)(until_ns % LL_NS_PER_S)};
	int cancel_state = card->cancel_state;
	card->waiting++;
	int rc = pthread_cond_timedwait(&card->changed, &card->lock, &until);
	card->waiting--;
	card->cancel_state = cancel_state;
	return rc == 0;
}

static void tell_change(struct card *card)
{
	if (card->waiting)
		pthread_cond_broadcast(&card->changed);
}

void ll_growth_enter(const struct ll_device_state *dev, enum ll_growth_kind kind)
{
	struct card *card = card_of(dev);
	struct group *group = &card->groups[kind];
	uint64_t until_ns = group->is_closed ? ll_now_ns() + ENTER_MOST_NS : 0;
	while (group->is_closed && wait_for_change(card, until_ns))
		;
	group->calls++;
	own_calls[kind]++;
}

void ll_growth_leave(const struct ll_device_state *dev, enum ll_growth_kind kind)
{
	struct card *card = card_of(dev);
	card->groups[kind].calls--;
	own_calls[kind]--;
	tell_change(card);
}

bool ll_growth_close(const struct ll_device_state *dev, enum ll_growth_kind kind, uint64_t most_ns, unsigned *ret_calls)
{
	struct card *card = card_of(dev);
	struct group *group = &card->groups[kind];
	bool may_wait = most_ns && !own_calls[kind];
	uint64_t until_ns = may_wait ? ll_now_ns() + most_ns : 0;
	while (group->is_closed && may_wait && wait_for_change(card, until_ns))
		;
	if (group->is_closed)
		return false;
	group->is_closed = true;
	while (group->calls && may_wait && wait_for_change(card, until_ns))
		;
	*ret_calls = group->calls;
	return true;
}

void ll_growth_open(const struct ll_device_state *dev, enum ll_growth_kind kind)
{
	struct card *card = card_of(dev);
	card->groups[kind].is_closed = false;
	tell_change(card);
}

void ll_growth_wait(const struct ll_device_state *dev, uint64_t most_ns)
{
	wait_for_change(card_of(dev), ll_now_ns() + most_ns);
}

void ll_growth_tell(const struct ll_device_state *dev)
{
	tell_change(card_of(dev));
}

/* ---- charges ---- */

bool ll_growth_has_room(const struct ll_device_state *dev, uint64_t bytes)
{
	struct ll_memory_view view;
	ll_port_read_memory(dev->claim, &view);
	return !view.limit_bytes ||
	       (view.used_bytes <= view.limit_bytes && bytes <= view.limit_bytes - view.used_bytes);
}

int ll_growth_reserve(struct ll_device_state *dev, struct ll_growth *growth, uint64_t bytes)
{
	int rc = ll_charge_reserve(dev, bytes);
	if (rc == 0) {
		growth->charged_bytes += bytes;
		growth->pending_bytes += bytes;
	}
	return rc;
}

void ll_growth_hold(struct ll_growth *growth, uint64_t bytes)
{
	growth->pending_bytes += bytes;
}

void ll_growth_end(struct ll_growth *growth, uint64_t bytes)
{
	growth->pending_bytes -= bytes;
}

bool ll_growth_settle(struct ll_device_state *dev, struct ll_growth *growth, uint64_t has_bytes)
{
	/* The pending bytes of a call are charged, and the driver may have allocated them already. So the charge is too
	 * high only if it exceeds the sum of has_bytes and pending_bytes. */
	uint64_t most_bytes = has_bytes + growth->pending_bytes, before = growth->charged_bytes;
	int rc = 0;
	if (before > most_bytes) {
		growth->charged_bytes = most_bytes;
		ll_device_state_release(dev, before - most_bytes);
	} else if (has_bytes > before) {
		growth->charged_bytes = has_bytes;
		rc = ll_charge_reserve(dev, has_bytes - before);
		if (rc != 0)
			ll_device_state_charge(dev, has_bytes - before);
	}
	return rc != -ENOMEM;
}
