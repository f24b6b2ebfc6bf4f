/*
 * flood PLACE WAY [COUNT]: one user who floods the loadlined at that socket file, until it is ended.
 *
 *     idle      as much work for the machine, and nothing of loadlined: what it is compared with
 *     connect   connects and closes, without a pause
 *     silent    COUNT connections that say nothing, and new ones in place of those that loadlined closes
 *     hello     connects, says HELLO and closes
 *     keep      COUNT connections that have said HELLO, and new ones in place of those that loadlined closes
 *     queue     COUNT jobs that wait in the queue, and others that come and go
 *
 * It prints "ready" when the flood is there.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/message.h"
#include "protocol/place.h"

enum { ROUNDS = 20000, MOST = 20000, PASSING = 16, SPARE_FDS = 32, TIMES = 97, SIZES = 61 };
#define TIME_NS UINT64_C(420000000000)
#define SIZE_BYTES UINT64_C(0x40000000)

static struct ll_place place;
static struct pollfd fds[MOST];
static size_t count;

static void say_ready(void)
{
	static bool is_said;
	if (!is_said)
		puts("ready");
	fflush(stdout);
	is_said = true;
}

/* Returns -1 if there is no place among the connections that wait. */
static int open_one(void)
{
	int fd;
	return ll_place_connect_any(&place, &fd) ? -1 : fd;
}

static void say_hello(int fd)
{
	union ll_message message;
	ll_message_init_hello(&message, LL_ROLE_COMMAND, "0.1.0");
	ll_message_send(fd, &message, NULL, 0);
}

/* None is like the one before, so that the plan has many steps. */
static void ask_for_place(int fd)
{
	union ll_message message;
	static unsigned number;
	ll_message_init(&message, LL_MESSAGE_ADMIT);
	number++;
	message.admit.slice = -1;
	message.admit.time_ns = (1 + number % TIMES) * TIME_NS;
	message.admit.limits.memory_bytes = (1 + number % SIZES) * SIZE_BYTES;
	message.admit.said = LL_SET_MEMORY;
	if (getrandom(&message.admit.job, sizeof message.admit.job, 0) < 0)
		_exit(1);
	ll_message_text_set(message.admit.command, sizeof message.admit.command, "flood");
	ll_message_send(fd, &message, NULL, 0);
}

/* ---- without connections that stay ---- */

static void be_idle(void)
{
	for (unsigned i = 0;; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			close(fd);
		if (i == ROUNDS)
			say_ready();
	}
}

static void connect_and_close(bool says_hello)
{
	for (unsigned i = 0;; i++) {
		int fd = open_one();
		if (fd >= 0 && says_hello)
			say_hello(fd);
		if (fd >= 0)
			close(fd);
		if (i == ROUNDS)
			say_ready();
	}
}

/* ---- connections that stay ---- */

static void open_again(struct pollfd *one, bool says_hello, bool is_queue)
{
	if (one->fd >= 0)
		close(one->fd);
	one->fd = open_one();
	one->events = POLLIN;
	if (one->fd >= 0 && says_hello)
		say_hello(one->fd);
	if (one->fd >= 0 && is_queue)
		ask_for_place(one->fd);
}

/* Returns false if the other side has closed. */
static bool read_all(int fd)
{
	union ll_message message;
	int passed[LL_MESSAGE_FDS], rc;
	size_t passed_count = 0;
	while ((rc = ll_message_receive(fd, &message, passed, &passed_count)) == 0)
		ll_message_close_fds(passed, passed_count);
	return rc == -EAGAIN;
}

static void look_at_all(bool says_hello, bool is_queue)
{
	for (size_t i = 0; i < count; i++) {
		bool is_lost = fds[i].fd < 0 || (fds[i].revents && !read_all(fds[i].fd));
		if (is_lost)
			open_again(&fds[i], says_hello, is_queue);
	}
}

/* Each is in the queue for a moment, and changes the plan twice. */
static void come_and_go(void)
{
	int passing[PASSING];
	for (size_t i = 0; i < PASSING; i++) {
		passing[i] = open_one();
		if (passing[i] < 0)
			continue;
		say_hello(passing[i]);
		ask_for_place(passing[i]);
	}
	for (size_t i = 0; i < PASSING; i++) {
		if (passing[i] < 0)
			continue;
		poll(&(struct pollfd){.fd = passing[i], .events = POLLIN}, 1, 1); /* for the WELCOME */
		close(passing[i]);
	}
}

static void keep_open(bool says_hello, bool is_queue)
{
	for (unsigned i = 0;; i++) {
		look_at_all(says_hello, is_queue);
		poll(fds, count, is_queue ? 0 : 10);
		if (is_queue)
			come_and_go();
		if (i)
			say_ready();
	}
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	if (argc < 3 || strlen(argv[1]) >= sizeof place.name)
		return 2;
	memcpy(place.name, argv[1], strlen(argv[1]));
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	count = argc > 3 ? (size_t)atol(argv[3]) : 0;
	count = count < MOST ? count : MOST;
	count = count + SPARE_FDS < limit.rlim_cur ? count : limit.rlim_cur - SPARE_FDS;
	for (size_t i = 0; i < count; i++)
		fds[i].fd = -1;
	const char *way = argv[2];
	if (strcmp(way, "idle") == 0)
		be_idle();
	if (strcmp(way, "connect") == 0 || strcmp(way, "hello") == 0)
		connect_and_close(strcmp(way, "hello") == 0);
	keep_open(strcmp(way, "silent") != 0, strcmp(way, "queue") == 0);
}
