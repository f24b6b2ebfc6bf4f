#include "daemon/machine/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/packet.h"
#include "daemon/jobs/jobs.h"
#include "protocol/service_socket.h"

/* ---- either link ---- */

static void free_poll(uv_handle_t *handle)
{
	free(handle);
}

static void close_connection(uv_poll_t **poll, int *fd)
{
	if (!*poll)
		return;
	uv_close((uv_handle_t *)*poll, free_poll);
	*poll = NULL;
	close(*fd);
	*fd = -1;
}

static int open_connection(uv_loop_t *loop, const struct ll_place *place, void *data, uv_poll_t **ret_poll, int *ret_fd)
{
	int fd = -1;
	int rc = ll_service_socket_connect(place->name, &fd);
	uv_poll_t *poll = rc ? NULL : calloc(1, sizeof *poll);
	if (!rc)
		rc = poll ? uv_poll_init(loop, poll, fd) : -ENOMEM;
	if (rc) {
		free(poll);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	poll->data = data;
	*ret_poll = poll;
	*ret_fd = fd;
	return 0;
}

/* The keeper waits 1.5 s for systemd. KEEPER_RETRY_MS: time between two attempts to connect. */
enum { REPLY_MS = 2000, KEEPER_RETRY_MS = 1000, REPLIES_AT_A_TIME = 16 };

struct ll_keeper_wait {
	struct ll_keeper_wait *next; /* later */
	uint32_t serial;
	uint64_t until_ms; /* on the loop's clock; 0: its connection has ended */
	ll_keeper_on_reply *on_reply;
	uint64_t data;
};

/* ---- waits for the keeper ---- */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct ll_keeper_link *link)
{
	uint64_t now_ms = uv_now(link->loop);
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

/* ---- the connection to the keeper ---- */

/* The loop ends the waits a moment later, because a caller may be in the middle of its books. */
static void disconnect_keeper(struct ll_keeper_link *link)
{
	if (!link->poll)
		return;
	close_connection(&link->poll, &link->fd);
	for (struct ll_keeper_wait *wait = link->waits; wait; wait = wait->next)
		wait->until_ms = 0;
	set_timer(link);
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_keeper_link *link = timer->data;
	uint64_t now_ms = uv_now(link->loop);
	/* Requests that a reply makes are later in the list, and their deadlines too. */
	while (link->waits && link->waits->until_ms <= now_ms) {
		bool is_lost = !link->waits->until_ms;
		link->state = is_lost ? link->state : LL_KEEPER_ABSENT;
		end_wait(link, link->waits, is_lost ? -ECONNRESET : -ETIMEDOUT,
			 is_lost ? "loadline-keeper has ended" : "loadline-keeper does not answer");
	}
	set_timer(link);
}

/* The keeper replies in the order of the requests. */
static void take_reply(struct ll_keeper_link *link, struct ll_keeper_reply *reply)
{
	struct ll_keeper_wait *wait = link->waits;
	reply->text[sizeof reply->text - 1] = '\0';
	if (reply->call == LL_KEEPER_HELLO) {
		link->state = reply->code == -ENOTSUP ? LL_KEEPER_REFUSES : LL_KEEPER_PRESENT;
		if (link->state == LL_KEEPER_REFUSES)
			ll_warn("jobs have no control groups, and are known by their tokens only: loadline-keeper "
				"refuses: %s",
				reply->text);
		if (!reply->code && reply->groups <= LL_GROUPS_FOLDER &&
		    strnlen(reply->text, sizeof reply->text) < sizeof link->groups.base) {
			link->groups.kind = (enum ll_group_kind)reply->groups;
			memcpy(link->groups.base, reply->text, sizeof link->groups.base);
			ll_job_groups_look(link->server);
		}
	}
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
	struct ll_keeper_wait **at = &link->waits;
	struct ll_keeper_wait *wait = calloc(1, sizeof *wait);
	if (!wait)
		return false;
	*wait = (struct ll_keeper_wait){
	    .serial = link->serial, .until_ms = uv_now(link->loop) + REPLY_MS, .on_reply = on_reply, .data = data};
	while (*at)
		at = &(*at)->next;
	*at = wait;
	set_timer(link);
	return true;
}

static bool connect_keeper(struct ll_keeper_link *link)
{
	const struct ll_keeper_request hello = {.call = LL_KEEPER_HELLO};
	if (open_connection(link->loop, &link->place, link, &link->poll, &link->fd)) {
		link->state = LL_KEEPER_ABSENT;
		link->retry_ms = uv_now(link->loop) + KEEPER_RETRY_MS;
		return false;
	}
	uv_poll_start(link->poll, UV_READABLE, on_readable);
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
	return *link->place.name && uv_now(link->loop) >= link->retry_ms && connect_keeper(link);
}

bool ll_keeper_link_send(struct ll_keeper_link *link, const struct ll_keeper_request *request, int pidfd,
			 ll_keeper_on_reply *on_reply, uint64_t data)
{
	return is_connected(link) && link->state != LL_KEEPER_REFUSES &&
	       send_request(link, request, pidfd, on_reply, data);
}

void ll_keeper_link_greet(struct ll_keeper_link *link)
{
	if (link->groups.kind == LL_GROUPS_NONE)
		is_connected(link);
}

/* ---- start and end ---- */

int ll_keeper_link_init(struct ll_keeper_link *link, struct ll_server *server, uv_loop_t *loop,
			const struct ll_place *system)
{
	*link = (struct ll_keeper_link){.server = server, .loop = loop, .fd = -1};
	if (!system || ll_keeper_place(system, &link->place))
		link->place.name[0] = '\0';
	link->timer.data = link;
	return uv_timer_init(loop, &link->timer);
}

void ll_keeper_link_fini(struct ll_keeper_link *link)
{
	while (link->waits) {
		struct ll_keeper_wait *wait = link->waits;
		link->waits = wait->next;
		free(wait);
	}
	disconnect_keeper(link);
	link->place.name[0] = '\0';
	uv_close((uv_handle_t *)&link->timer, NULL);
}

enum { NOTIFY_RETRY_MS = 2000 };

struct waiting_event {
	struct waiting_event *next;
	union ll_message message;
};

struct ll_notify_link {
	uv_loop_t *loop;
	struct ll_place place;
	uv_poll_t *poll; /* NULL: no connection */
	int fd;
	uv_timer_t retry;
	struct waiting_event *first, **last;
	size_t count;
	uint32_t dropped;
	bool has_said_absent;
};

static void look_at_queue(struct ll_notify_link *link);

/* ---- the connection to loadline-notify ---- */

/* loadline-notify sends nothing: what can be read is the end of the connection. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct ll_notify_link *link = poll->data;
	char byte;
	if (link->poll != poll)
		return;
	if (status || ((events & UV_READABLE) && recv(link->fd, &byte, 1, MSG_DONTWAIT) >= 0))
		close_connection(&link->poll, &link->fd);
	look_at_queue(link);
}

static int connect_notify(struct ll_notify_link *link)
{
	int rc = open_connection(link->loop, &link->place, link, &link->poll, &link->fd);
	link->has_said_absent &= rc != 0;
	return rc ? rc : uv_poll_start(link->poll, UV_READABLE, on_ready);
}

static void on_retry(uv_timer_t *timer)
{
	look_at_queue(timer->data);
}

/* ---- the queue of events ---- */

static void remove_first(struct ll_notify_link *link)
{
	struct waiting_event *event = link->first;
	link->first = event->next;
	if (!link->first)
		link->last = &link->first;
	link->count--;
	free(event);
}

static void look_at_queue(struct ll_notify_link *link)
{
	int rc = link->poll || !link->first ? 0 : connect_notify(link);
	while (!rc && link->poll && link->first && !(rc = ll_message_send(link->fd, &link->first->message, NULL, 0)))
		remove_first(link);
	if (rc && rc != -EAGAIN)
		close_connection(&link->poll, &link->fd);
	if (link->poll) {
		uv_poll_start(link->poll, UV_READABLE | (link->first ? UV_WRITABLE : 0), on_ready);
	} else if (link->first) {
		if (!link->has_said_absent)
			ll_warn("notify: events wait: loadline-notify does not listen at %s: %s", link->place.name,
				strerror(rc ? -rc : ECONNRESET));
		link->has_said_absent = true;
		uv_timer_start(&link->retry, on_retry, NOTIFY_RETRY_MS, 0);
	}
}

void ll_notify_link_send(struct ll_notify_link *link, const union ll_message *message, const char *hook)
{
	size_t own = 0;
	if (!link)
		return;
	/* So that a user who starts and cancels jobs all the time does not keep the events of others from being told.
	 */
	for (const struct waiting_event *at = link->first; at && message->event.flags & LL_EVENT_HAS_USER;
	     at = at->next) {
		const struct ll_message_event *other = &at->message.event;
		own += (other->flags & LL_EVENT_HAS_USER) && other->uid == message->event.uid;
	}
	bool has_room = own < LL_NOTIFY_OF_USER && link->count < LL_NOTIFY_QUEUE && strlen(hook) < LL_EVENT_HOOK_SIZE;
	struct waiting_event *event = has_room ? calloc(1, sizeof *event) : NULL;
	if (!event) {
		if (!link->dropped++)
			ll_warn("notify: events are dropped: %zu wait for loadline-notify", link->count);
		return;
	}
	if (link->dropped)
		ll_warn("notify: %u events were dropped", link->dropped);
	event->message = *message;
	ll_message_text_set(event->message.event.hook, sizeof event->message.event.hook, hook);
	event->message.event.dropped = link->dropped;
	link->dropped = 0;
	*link->last = event;
	link->last = &event->next;
	link->count++;
	if (!uv_is_active((uv_handle_t *)&link->retry))
		look_at_queue(link);
}

uint32_t ll_notify_link_waiting(const struct ll_notify_link *link)
{
	return link && !link->poll ? (uint32_t)link->count : 0;
}

/* ---- start and end ---- */

int ll_notify_link_new(uv_loop_t *loop, const struct ll_place *system, struct ll_notify_link **ret_link)
{
	*ret_link = NULL;
	if (!system)
		return 0;
	struct ll_notify_link *link = calloc(1, sizeof *link);
	if (!link)
		return -ENOMEM;
	link->loop = loop;
	link->fd = -1;
	link->last = &link->first;
	int rc = ll_place_beside(system, "notify", &link->place);
	if (!rc)
		rc = uv_timer_init(loop, &link->retry);
	if (rc) {
		free(link);
		return rc;
	}
	link->retry.data = link;
	*ret_link = link;
	return 0;
}

static void free_link(uv_handle_t *handle)
{
	free(handle->data);
}

void ll_notify_link_free(struct ll_notify_link *link)
{
	if (!link)
		return;
	close_connection(&link->poll, &link->fd);
	while (link->first)
		remove_first(link);
	uv_close((uv_handle_t *)&link->retry, free_link);
}
