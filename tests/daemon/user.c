#include "user.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/process_id.h"
#include "test.h"
#include "wait_for.h"

enum { LOOK_MS = 20, WORD_BITS = 32 };

struct ll_page_slot *user_slot(const struct user *user)
{
	return &user->page->slots[user->slot];
}

bool user_connect(struct user *user, const struct world *world, uint64_t job, const char *uuid)
{
	union ll_message message;
	int process_fd = ll_process_open(getpid());
	*user = (struct user){.world = world, .job = job, .fd = -1};
	ll_message_text_set(user->uuid, sizeof user->uuid, uuid);
	if (ll_place_connect_any(&world->place, &user->fd)) {
		user->fd = -1;
		close(process_fd);
		return false;
	}
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_PROCESS;
	int rc = ll_message_send(user->fd, &message, &process_fd, 1);
	close(process_fd);
	return rc == 0 && next_message(user->fd, &message) == LL_MESSAGE_WELCOME;
}

static void take_pages(struct user *user, const int fds[2])
{
	ll_page_unmap(user->page);
	ll_orders_unmap(user->orders);
	assert_int_equal(ll_page_map(fds[0], true, &user->page), 0);
	assert_int_equal(ll_orders_map(fds[1], false, &user->orders), 0);
}

static int take_answer(struct user *user)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	unsigned kind = next_message_with_fds(user->fd, &message, fds, &count);
	if (kind == LL_MESSAGE_REFUSED)
		return message.refused.code;
	if (kind != LL_MESSAGE_CLAIMED)
		return -EPIPE;
	assert_int_equal(count, 2);
	take_pages(user, fds);
	ll_message_close_fds(fds, count);
	user->token = message.claimed.slot_token;
	user->slot = message.claimed.slot;
	user->card = message.claimed.card;
	user->instance = user->orders->instance;
	return 0;
}

int user_claim(struct user *user)
{
	union ll_message message;
	struct ll_process_id id = ll_process_self();
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = user->job;
	message.claim.slot_token = user->token;
	message.claim.slot = user->slot;
	message.claim.namespaces = id.namespaces;
	message.claim.start_ticks = id.start_ticks;
	message.claim.pid = id.pid;
	message.claim.clock_ns = ll_now_ns();
	ll_message_text_set(message.claim.uuid, sizeof message.claim.uuid, user->uuid);
	int rc = ll_message_send(user->fd, &message, NULL, 0);
	return rc ? -EPIPE : take_answer(user);
}

void user_begin(struct user *user, const struct world *world, uint64_t job, const char *uuid)
{
	uint64_t began_ns = ll_now_ns();
	int rc = -EPIPE;
	for (;;) {
		if (user_connect(user, world, job, uuid) && (rc = user_claim(user)) == 0)
			return;
		if (rc != -EPIPE && rc != -EAGAIN)
			fail_msg("claim: %s", strerror(-rc));
		assert_true(is_in_time(began_ns, DEADLINE_NS));
		if (user->fd >= 0)
			close(user->fd);
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
}

void user_come_back(struct user *user)
{
	struct user again;
	uint64_t began_ns = ll_now_ns();
	int rc = -EPIPE;
	if (user->fd >= 0)
		close(user->fd);
	user->fd = -1;
	for (;;) {
		bool is_there = user_connect(&again, user->world, user->job, user->uuid);
		user->fd = again.fd;
		if (is_there && (rc = user_claim(user)) == 0)
			return;
		if (rc != -EPIPE && rc != -EAGAIN)
			fail_msg("the same slot again: %s", strerror(-rc));
		assert_true(is_in_time(began_ns, DEADLINE_NS));
		if (user->fd >= 0)
			close(user->fd);
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
}

bool user_has_slot(const struct user *user)
{
	return user_slot(user)->token == user->token;
}

void user_say(struct user *user, enum ll_message_kind kind)
{
	union ll_message message;
	ll_message_init(&message, kind);
	message.slot.slot_token = user->token;
	message.slot.slot = user->slot;
	ll_message_send(user->fd, &message, NULL, 0);
}

bool user_take(struct user *user, uint32_t units)
{
	_Atomic uint64_t *word = &user_slot(user)->memory;
	uint64_t old = *word;
	do {
		uint32_t granted = LL_MEMORY_GRANTED(old), used = LL_MEMORY_USED(old);
		if (granted < used || granted - used < units)
			return false;
	} while (!atomic_compare_exchange_weak(word, &old, old + units));
	return true;
}

void user_release(struct user *user, uint32_t units)
{
	atomic_fetch_sub(&user_slot(user)->memory, units);
}

void user_charge(struct user *user, uint32_t units)
{
	atomic_fetch_add(&user_slot(user)->memory, units);
	user_say(user, LL_MESSAGE_WAKE);
}

void user_want(struct user *user, uint32_t units)
{
	user_slot(user)->memory_want = ++user->serial << WORD_BITS | units;
	user_say(user, LL_MESSAGE_WAKE);
}

void user_have_no_reserve(struct user *user)
{
	struct ll_page_slot *slot = user_slot(user);
	uint32_t asked = slot->reserve_asked;
	if (asked == slot->reserve_given)
		return;
	slot->reserve_given = asked;
	user_say(user, LL_MESSAGE_WAKE);
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec time = {.tv_nsec = LOOK_MS * 1000000L};
	syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

int user_answer(struct user *user)
{
	uint64_t began_ns = ll_now_ns();
	for (;;) {
		struct ll_page_slot *slot = user_slot(user);
		uint32_t count = slot->wake_count;
		uint64_t answer = slot->memory_reply;
		if (answer >> WORD_BITS == user->serial)
			return (int)(uint32_t)answer;
		if (user->orders->instance != user->instance)
			user_come_back(user);
		if (!is_in_time(began_ns, DEADLINE_NS))
			fail_msg("no answer to a want");
		user_have_no_reserve(user);
		sleep_on(&slot->wake_count, count);
	}
}

int user_reserve(struct user *user, uint32_t units)
{
	int code = 0;
	while (!code) {
		if (user_take(user, units))
			break;
		user_want(user, units);
		code = user_answer(user);
	}
	user_slot(user)->memory_want = user->serial << WORD_BITS;
	return -code;
}

void user_close(struct user *user)
{
	if (user->fd >= 0)
		close(user->fd);
	ll_page_unmap(user->page);
	ll_orders_unmap(user->orders);
	user->fd = -1;
	user->page = NULL;
	user->orders = NULL;
}
