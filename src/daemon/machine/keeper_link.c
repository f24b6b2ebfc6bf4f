#include "daemon/machine/keeper_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/packet.h"
#include "daemon/core/server.h"
#include "daemon/jobs/job_group.h"

/* The keeper waits 1.5 s for systemd. RETRY_MS: time between two attempts to connect. */
enum { REPLY_MS = 2000, RETRY_MS = 1000, REPLIES_AT_A_TIME = 16 };

struct ll_keeper_wait {
	struct ll_keeper_wait *next; /* later */
	uint32_t serial;
	uint64_t until_ms; /* on the loop's clock; 0: its connection has ended */
	ll_keeper_on_reply *on_reply;
	uint64_t data;
};

/* ---- waits ---- */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct ll_keeper_link *link)
{
	uint64_t now_ms = uv_now(&link->server->loop);
	if (!link->waits)
		uv_timer_stop(&link->timer);
	else
		uv_timer_start(&link->timer, on_timer,
			       link->waits->until_ms > now_ms ? link->waits->until_ms - now_ms : 0, 0);
}

static void end_wait(struct ll_keeper_link *link, struct ll_keeper_wait *wait, int code, const char *reason)
{
	struct ll_keeper_wait **at = &link->waits;
	while (*at != wait)
		at = &(*at)->next;
	*at = wait->next;
	if (wait->on_reply)
		wait->on_reply(link->server, code, reason, wait->data);
	free(wait);
}

static bool add_wait(struct ll_keeper_link *link, ll_keeper_on_reply *on_reply, uint64_t data)
{
	struct ll_keeper_wait **at = &link->waits;
	struct ll_keeper_wait *wait = calloc(1, sizeof *wait);
	if (!wait)
		return false;
	*wait = (struct ll_keeper_wait){.serial = link->serial,
					.until_ms = uv_now(&link->server->loop) + REPLY_MS,
					.on_reply = on_reply,
					.data = data};
	while (*at)
		at = &(*at)->next;
	*at = wait;
	set_timer(link);
	return true;
}

/* ---- the connection ---- */

static void free_poll(uv_handle_t *handle)
{
	free(handle);
}

/* The loop ends the waits a moment later, because a caller may be in the middle of its books. */
static void disconnect_keeper(struct ll_keeper_link *link)
{
	if (!link->poll)
		return;
	uv_close((uv_handle_t *)link->poll, free_poll);
	link->poll = NULL;
	close(link->fd);
	link->fd = -1;
	for (struct ll_keeper_wait *wait = link->waits; wait; wait = wait->next)
		wait->until_ms = 0;
	set_timer(link);
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_keeper_link *link = timer->data;
	uint64_t now_ms = uv_now(&link->server->loop);
	/* Requests that a reply makes are later in the list, and their deadlines too. */
	while (link->waits && link->waits->until_ms <= now_ms) {
		bool is_lost = !link->waits->until_ms;
		link->state = is_lost ? link->state : LL_KEEPER_ABSENT;
		end_wait(link, link->waits, is_lost ? -ECONNRESET : -ETIMEDOUT,
			 is_lost ? "loadline-keeper has ended" : "loadline-keeper does not answer");
	}
	set_timer(link);
}

static void take_hello(struct ll_keeper_link *link, const struct ll_keeper_reply *reply)
{
	link->state = reply->code == -ENOTSUP ? LL_KEEPER_REFUSES : LL_KEEPER_PRESENT;
	if (link->state == LL_KEEPER_REFUSES)
		ll_warn("jobs have no control groups, and are known by their tokens only: loadline-keeper refuses: %s",
			reply->text);
	if (reply->code || reply->groups > LL_GROUPS_FOLDER ||
	    strnlen(reply->text, sizeof reply->text) >= sizeof link->groups.base)
		return;
	link->groups.kind = (enum ll_group_kind)reply->groups;
	memcpy(link->groups.base, reply->text, sizeof link->groups.base);
	ll_job_groups_look(link->server);
}

/* The keeper replies in the order of the requests. */
static void take_reply(struct ll_keeper_link *link, struct ll_keeper_reply *reply)
{
	struct ll_keeper_wait *wait = link->waits;
	reply->text[sizeof reply->text - 1] = '\0';
	if (reply->call == LL_KEEPER_HELLO)
		take_hello(link, reply);
	while (wait && wait->serial != reply->serial)
		wait = wait->next;
	if (wait)
		end_wait(link, wait, reply->code > 0 ? -EPROTO : reply->code, reply->text);
	set_timer(link);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct ll_keeper_link *link = poll->data;
	(void)status;
	(void)events;
	for (int i = 0; i < REPLIES_AT_A_TIME && link->poll == poll; i++) {
		struct ll_keeper_reply reply;
		size_t count = 0;
		int rc = ll_packet_receive(link->fd, false, &reply, sizeof reply, NULL, 0, &count);
		if (rc == -EAGAIN)
			return;
		if (rc)
			disconnect_keeper(link);
		else
			take_reply(link, &reply);
	}
}

static bool is_keeper(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static int open_socket(const struct ll_place *place)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(place->name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && (connect(fd, (const struct sockaddr *)&address, length) < 0 || !is_keeper(fd))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool send_request(struct ll_keeper_link *link, const struct ll_keeper_request *request, int pidfd,
			 ll_keeper_on_reply *on_reply, uint64_t data)
{
	struct ll_keeper_request numbered = *request;
	numbered.version = LL_KEEPER_VERSION;
	numbered.serial = ++link->serial;
	int rc = ll_packet_send(link->fd, &numbered, sizeof numbered, &pidfd, pidfd >= 0);
	if (rc) {
		if (rc != -EAGAIN)
			disconnect_keeper(link);
		return false;
	}
	return add_wait(link, on_reply, data);
}

static bool connect_keeper(struct ll_keeper_link *link)
{
	const struct ll_keeper_request hello = {.call = LL_KEEPER_HELLO};
	uv_poll_t *poll = calloc(1, sizeof *poll);
	int fd = poll ? open_socket(&link->place) : -1;
	if (fd < 0 || uv_poll_init(&link->server->loop, poll, fd)) {
		if (fd >= 0)
			close(fd);
		free(poll);
		link->state = LL_KEEPER_ABSENT;
		link->retry_ms = uv_now(&link->server->loop) + RETRY_MS;
		return false;
	}
	poll->data = link;
	link->poll = poll;
	link->fd = fd;
	uv_poll_start(poll, UV_READABLE, on_readable);
	return send_request(link, &hello, -1, NULL, 0);
}

static bool is_connected(struct ll_keeper_link *link)
{
	char byte;
	/* A keeper that has just ended: the loop has not told yet. */
	if (link->poll && recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		disconnect_keeper(link);
	if (link->poll)
		return true;
	return *link->place.name && uv_now(&link->server->loop) >= link->retry_ms && connect_keeper(link);
}

bool ll_keeper_link_send(struct ll_server *server, const struct ll_keeper_request *request, int pidfd,
			 ll_keeper_on_reply *on_reply, uint64_t data)
{
	struct ll_keeper_link *link = &server->keeper;
	return is_connected(link) && link->state != LL_KEEPER_REFUSES &&
	       send_request(link, request, pidfd, on_reply, data);
}

void ll_keeper_link_greet(struct ll_server *server)
{
	if (server->keeper.groups.kind == LL_GROUPS_NONE)
		is_connected(&server->keeper);
}

/* ---- start and end ---- */

int ll_keeper_link_init(struct ll_server *server)
{
	struct ll_keeper_link *link = &server->keeper;
	*link = (struct ll_keeper_link){.server = server, .fd = -1};
	if (!server->is_system || ll_keeper_place(&server->place, &link->place))
		link->place.name[0] = '\0';
	link->timer.data = link;
	return uv_timer_init(&server->loop, &link->timer);
}

void ll_keeper_link_fini(struct ll_server *server)
{
	struct ll_keeper_link *link = &server->keeper;
	while (link->waits) {
		struct ll_keeper_wait *wait = link->waits;
		link->waits = wait->next;
		free(wait);
	}
	disconnect_keeper(link);
	link->place.name[0] = '\0';
	uv_close((uv_handle_t *)&link->timer, NULL);
}
