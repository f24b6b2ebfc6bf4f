#include "cli/mover/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/packet.h"
#include "mover/protocol.h"

enum { READY_MS = 30000, LINGER_S = 60 };

static bool is_served(const struct ll_card *card, const char *folder)
{
	char name[LL_UUID_SIZE + sizeof LL_MOVER_SOCKET_SUFFIX];
	int fd;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, card->uuid);
	if (ll_packet_connect(folder, name, &fd) < 0)
		return false;
	close(fd);
	return true;
}

/* It runs on when this process has ended, and nobody waits for it. What it writes to *ret_ready_fd until it is ready is
 * for people; then it lets go of its end. */
static int start_process(const struct ll_card *card, int *ret_ready_fd, struct ll_err *err)
{
	int fds[2];
	char ready[16], linger[16];
	const char *words[] = {"loadline", "--log-level", "warn",       "mover", "-i", card->uuid,
			       "--linger", linger,        "--ready-fd", ready,   NULL};
	pid_t none;
	snprintf(ready, sizeof ready, "%d", LL_CHILD_FIRST_FD);
	snprintf(linger, sizeof linger, "%ds", LINGER_S);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "card %s: start a mover: %s", card->label, strerror(errno));
	struct ll_child child = {
	    .words = words,
	    .in = LL_CHILD_NULL,
	    .out = LL_CHILD_NULL,
	    .err = fds[1],
	    .fds = &fds[1],
	    .fd_count = 1,
	    .flags = LL_CHILD_ORPHAN,
	};
	int rc = ll_child_start(&child, &none, err);
	close(fds[1]);
	if (rc == 0) {
		*ret_ready_fd = fds[0];
		return 0;
	}
	close(fds[0]);
	return ll_err_wrap(err, "card %s: start a mover", card->label);
}

/* Passes on what it says to people, up to a NUL: then it is ready. -ECHILD: it has ended before; -ETIMEDOUT. */
static int wait_until_ready(int ready_fd)
{
	struct pollfd ready = {.fd = ready_fd, .events = POLLIN};
	uint64_t deadline_ns = ll_now_ns() + READY_MS * LL_NS_PER_MS;
	for (;;) {
		char text[1024];
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		if (poll(&ready, 1, (int)((deadline_ns - now_ns) / LL_NS_PER_MS) + 1) <= 0)
			continue;
		ssize_t n = read(ready_fd, text, sizeof text);
		if (n <= 0)
			return -ECHILD;
		const char *end = memchr(text, '\0', (size_t)n);
		fwrite(text, 1, end ? (size_t)(end - text) : (size_t)n, stderr);
		if (end)
			return 0;
	}
}

int ll_mover_start(const struct ll_card *card, const char *folder, struct ll_err *err)
{
	int ready_fd = -1;
	if (is_served(card, folder))
		return 0;
	int rc = start_process(card, &ready_fd, err);
	if (rc)
		return rc;
	rc = wait_until_ready(ready_fd);
	close(ready_fd);
	if (!rc || is_served(card, folder)) /* another `run` may have been faster */
		return 0;
	ll_err_set(err, rc, "card %s: no mover could be started", card->label);
	return ll_err_hint(err, "`loadline mover -i %s` says why; or leave --evictable out", card->label);
}
