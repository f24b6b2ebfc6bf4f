/*
 * fake_daemon.h - what a hold sees of loadlined: a place that somebody serves, and pages of jobs, written by the test.
 *
 * cmocka.h comes first. Nothing here has a thread: the test accepts and answers when it wants to.
 */
#ifndef LOADLINE_TESTS_UNIT_FAKE_DAEMON_H
#define LOADLINE_TESTS_UNIT_FAKE_DAEMON_H

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "protocol/message.h"
#include "protocol/page.h"
#include "protocol/place.h"
#include "protocol/words.h"

struct fake_daemon {
	char world[32];
	struct ll_places places;
	struct ll_place place; /* of the user */
	int listen_fd, fd;     /* fd: of the connection; -1: none */
	uint32_t serial;       /* of the last message; answers repeat it */
};

struct fake_job {
	int page_fd, orders_fd;
	struct ll_page *page;
	struct ll_orders *orders;
};

static inline void fake_daemon_init(struct fake_daemon *daemon)
{
	*daemon = (struct fake_daemon){.world = "/tmp/ll-daemon-XXXXXX", .listen_fd = -1, .fd = -1};
	assert_non_null(mkdtemp(daemon->world));
	assert_int_equal(ll_places_find(daemon->world, &daemon->places, NULL), 0);
	daemon->place = daemon->places.user;
}

/* The place is named after the folder's inode, which may have been that of another test's world: its loadlined has the
 * name for 2 s after its last job. */
static inline void fake_daemon_listen(struct fake_daemon *daemon)
{
	int rc = -EADDRINUSE;
	for (int ms = 0; rc == -EADDRINUSE && ms < 10000; ms++) {
		rc = ll_place_listen(&daemon->place, &daemon->listen_fd);
		if (rc)
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	}
	assert_int_equal(rc, 0);
}

/* As if it had been killed. */
static inline void fake_daemon_kill(struct fake_daemon *daemon)
{
	if (daemon->listen_fd >= 0)
		close(daemon->listen_fd);
	if (daemon->fd >= 0)
		close(daemon->fd);
	daemon->listen_fd = daemon->fd = -1;
}

static inline void fake_daemon_fini(struct fake_daemon *daemon)
{
	fake_daemon_kill(daemon);
	assert_int_equal(rmdir(daemon->world), 0);
}

static inline void fake_daemon_expect(struct fake_daemon *daemon, enum ll_message_kind kind)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	assert_int_equal(poll(&(struct pollfd){.fd = daemon->fd, .events = POLLIN}, 1, 30000), 1);
	assert_int_equal(ll_message_receive(daemon->fd, &message, fds, &count), 0);
	assert_int_equal(message.header.kind, kind);
	daemon->serial = message.header.serial;
	ll_message_close_fds(fds, count);
}

/* Accepts, and answers what each client says first. */
static inline void fake_daemon_accept(struct fake_daemon *daemon)
{
	union ll_message message;
	assert_int_equal(poll(&(struct pollfd){.fd = daemon->listen_fd, .events = POLLIN}, 1, 30000), 1);
	daemon->fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(daemon->fd >= 0);
	fake_daemon_expect(daemon, LL_MESSAGE_HELLO);
	ll_message_init(&message, LL_MESSAGE_WELCOME);
	message.welcome.protocol = LL_PROTOCOL_VERSION;
	message.welcome.pid = (uint32_t)getpid();
	message.header.serial = daemon->serial;
	assert_int_equal(ll_message_send(daemon->fd, &message, NULL, 0), 0);
}

static inline void fake_daemon_accept_watch(struct fake_daemon *daemon)
{
	fake_daemon_accept(daemon);
	fake_daemon_expect(daemon, LL_MESSAGE_WATCH);
}

static inline void fake_daemon_send_page(const struct fake_daemon *daemon, uint64_t number, const struct fake_job *job)
{
	union ll_message message;
	int fds[2];
	assert_int_equal(ll_page_reopen_read_only(job->page_fd, &fds[0]), 0);
	assert_int_equal(ll_page_reopen_read_only(job->orders_fd, &fds[1]), 0);
	ll_message_init(&message, LL_MESSAGE_PAGE);
	message.page.job_number = number;
	assert_int_equal(ll_message_send(daemon->fd, &message, fds, 2), 0);
	ll_message_close_fds(fds, 2);
}

static inline void fake_daemon_send_page_gone(const struct fake_daemon *daemon, uint64_t number)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_PAGE_GONE);
	message.page.job_number = number;
	assert_int_equal(ll_message_send(daemon->fd, &message, NULL, 0), 0);
}

/* A job with one card of that UUID at index 1, and no slots. */
static inline void fake_job_init(struct fake_job *job, uint64_t token, const char *uuid)
{
	char text[LL_PAGE_UUID_SIZE] = "";
	uint64_t words[LL_PAGE_UUID_SIZE / 8];
	assert_int_equal(ll_page_make(&job->page_fd), 0);
	assert_int_equal(ll_orders_make((uint64_t[2]){token, token}, &job->orders_fd), 0);
	assert_int_equal(ll_page_map(job->page_fd, true, &job->page), 0);
	assert_int_equal(ll_orders_map(job->orders_fd, true, &job->orders), 0);
	snprintf(text, sizeof text, "%s", uuid);
	memcpy(words, text, sizeof words);
	for (size_t i = 0; i < LL_PAGE_UUID_SIZE / 8; i++)
		job->orders->cards[1].uuid[i] = words[i];
}

static inline void fake_job_fini(struct fake_job *job)
{
	ll_page_unmap(job->page);
	ll_orders_unmap(job->orders);
	close(job->page_fd);
	close(job->orders_fd);
}

static inline struct ll_page_slot *fake_job_give(struct fake_job *job, unsigned index, unsigned card, uint64_t token)
{
	struct ll_page_slot *slot = &job->page->slots[index];
	slot->activity_ns = 0;
	slot->card = card;
	slot->token = token;
	if (job->page->slot_end <= index)
		job->page->slot_end = index + 1;
	job->orders->slot_changes++;
	return slot;
}

static inline void fake_job_take(struct fake_job *job, struct ll_page_slot *slot)
{
	slot->token = 0;
	job->orders->slot_changes++;
}

#endif
