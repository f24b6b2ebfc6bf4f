#include "daemon/machine/notify_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "daemon/core/server.h"

enum { RETRY_MS = 2000 };

struct waiting_event {
	struct waiting_event *next;
	union ll_message message;
};

struct ll_notify_link {
	struct ll_server *server;
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

/* ---- the connection ---- */

static void free_poll(uv_handle_t *handle)
{
	free(handle);
}

static void disconnect_notify(struct ll_notify_link *link)
{
	if (!link->poll)
		return;
	uv_close((uv_handle_t *)link->poll, free_poll);
	link->poll = NULL;
	close(link->fd);
	link->fd = -1;
}

/* loadline-notify sends nothing: what can be read is the end of the connection. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct ll_notify_link *link = poll->data;
	char byte;
	if (link->poll != poll)
		return;
	if (status || ((events & UV_READABLE) && recv(link->fd, &byte, 1, MSG_DONTWAIT) >= 0))
		disconnect_notify(link);
	look_at_queue(link);
}

static bool is_trusted(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static int open_socket(const struct ll_place *place, int *ret_fd)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(place->name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)&address, length) < 0 ? -errno : is_trusted(fd) ? 0 : -EPERM;
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

static int connect_notify(struct ll_notify_link *link)
{
	int fd = -1;
	int rc = open_socket(&link->place, &fd);
	uv_poll_t *poll = rc ? NULL : calloc(1, sizeof *poll);
	if (!rc)
		rc = poll ? uv_poll_init(&link->server->loop, poll, fd) : -ENOMEM;
	if (rc) {
		free(poll);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	poll->data = link;
	link->poll = poll;
	link->fd = fd;
	link->has_said_absent = false;
	return uv_poll_start(poll, UV_READABLE, on_ready);
}

static void on_retry(uv_timer_t *timer)
{
	look_at_queue(timer->data);
}

static void retry_later(struct ll_notify_link *link, int rc)
{
	if (!link->has_said_absent)
		ll_warn("notify: events wait: loadline-notify does not listen at %s: %s", link->place.name,
			strerror(-rc));
	link->has_said_absent = true;
	uv_timer_start(&link->retry, on_retry, RETRY_MS, 0);
}

/* ---- the queue ---- */

static void remove_first(struct ll_notify_link *link)
{
	struct waiting_event *event = link->first;
	link->first = event->next;
	if (!link->first)
		link->last = &link->first;
	link->count--;
	free(event);
}

/* Returns 0 if all was sent, -EAGAIN if the socket is full, or another error. */
static int send_queue(struct ll_notify_link *link)
{
	int rc = 0;
	while (link->first && !(rc = ll_message_send(link->fd, &link->first->message, NULL, 0)))
		remove_first(link);
	return rc;
}

static void look_at_queue(struct ll_notify_link *link)
{
	int rc = link->poll || !link->first ? 0 : connect_notify(link);
	if (!rc && link->poll)
		rc = send_queue(link);
	if (rc && rc != -EAGAIN)
		disconnect_notify(link);
	if (link->poll)
		uv_poll_start(link->poll, UV_READABLE | (link->first ? UV_WRITABLE : 0), on_ready);
	else if (link->first)
		retry_later(link, rc ? rc : -ECONNRESET);
}

static struct waiting_event *new_event(const union ll_message *message, const char *hook)
{
	struct waiting_event *event = calloc(1, sizeof *event);
	if (!event)
		return NULL;
	event->message = *message;
	ll_message_text_set(event->message.event.hook, sizeof event->message.event.hook, hook);
	return event;
}

/* So that a user who starts and cancels jobs all the time does not keep the events of others from being told. */
static bool has_room(const struct ll_notify_link *link, const struct ll_message_event *event)
{
	size_t own = 0;
	for (const struct waiting_event *at = link->first; at && event->flags & LL_EVENT_HAS_USER; at = at->next) {
		const struct ll_message_event *other = &at->message.event;
		own += (other->flags & LL_EVENT_HAS_USER) && other->uid == event->uid;
	}
	return own < LL_NOTIFY_OF_USER && link->count < LL_NOTIFY_QUEUE;
}

void ll_notify_link_send(struct ll_notify_link *link, const union ll_message *message, const char *hook)
{
	struct waiting_event *event = NULL;
	if (!link)
		return;
	if (has_room(link, &message->event) && strlen(hook) < LL_EVENT_HOOK_SIZE)
		event = new_event(message, hook);
	if (!event) {
		if (!link->dropped++)
			ll_warn("notify: events are dropped: %zu wait for loadline-notify", link->count);
		return;
	}
	if (link->dropped)
		ll_warn("notify: %u events were dropped", link->dropped);
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

int ll_notify_link_new(struct ll_server *server, struct ll_notify_link **ret_link)
{
	*ret_link = NULL;
	if (!server->is_system)
		return 0;
	struct ll_notify_link *link = calloc(1, sizeof *link);
	if (!link)
		return -ENOMEM;
	link->server = server;
	link->fd = -1;
	link->last = &link->first;
	int rc = ll_place_beside(&server->place, "notify", &link->place);
	if (!rc)
		rc = uv_timer_init(&server->loop, &link->retry);
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
	disconnect_notify(link);
	while (link->first)
		remove_first(link);
	uv_close((uv_handle_t *)&link->retry, free_link);
}
