#include "daemon/core/server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/core/connection.h"
#include "daemon/policy/policy.h"

/* Of one user. HELLO follows the connection at once. */
enum { SILENT_MOST = 64 };
/* In a turn of the loop. To accept and to close takes some 5 us. */
#define ACCEPT_NS LL_NS_PER_MS
#define TURN_NS LL_NS_PER_MS

/* ---- users ---- */

static struct ll_visitor *find_visitor(struct ll_server *server, uint32_t uid)
{
	struct ll_door *door = &server->door;
	uint32_t owner = ll_subordinates_owner(&server->subordinates, uid);
	struct ll_visitor *visitor = door->visitors;
	while (visitor && visitor->owner != owner)
		visitor = visitor->next;
	if (visitor || !(visitor = calloc(1, sizeof *visitor)))
		return visitor;
	*visitor = (struct ll_visitor){
	    .next = door->visitors, .owner = owner, .is_bounded = server->is_system && owner && owner != geteuid()};
	door->visitors = visitor;
	return visitor;
}

struct ll_visitor *ll_door_enter(struct ll_server *server, uint32_t uid)
{
	struct ll_visitor *visitor = find_visitor(server, uid);
	if (visitor) {
		visitor->connections++;
		visitor->silent++;
	}
	return visitor;
}

void ll_door_leave(struct ll_visitor *visitor, bool is_silent)
{
	visitor->connections--;
	visitor->silent -= is_silent;
}

bool ll_door_has_time(const struct ll_server *server, const struct ll_visitor *visitor)
{
	return !visitor->is_bounded || visitor->turn != server->door.turn || visitor->spent_ns < TURN_NS;
}

void ll_door_spend(const struct ll_server *server, struct ll_visitor *visitor, uint64_t spent_ns)
{
	visitor->spent_ns = spent_ns + (visitor->turn == server->door.turn ? visitor->spent_ns : 0);
	visitor->turn = server->door.turn;
}

/* Those who are gone. */
static void forget_visitors(struct ll_door *door)
{
	struct ll_visitor **at = &door->visitors;
	while (*at) {
		struct ll_visitor *visitor = *at;
		if (visitor->connections) {
			at = &visitor->next;
			continue;
		}
		*at = visitor->next;
		free(visitor);
	}
}

/* ---- accepting ---- */

static int accept_next(const struct ll_door *door)
{
	struct sockaddr_un address;
	socklen_t length = sizeof address;
	return accept4(door->listen_fd, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void say_full(int fd, const char *reason)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = -EMFILE;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, reason);
	ll_message_send(fd, &message, NULL, 0);
}

/* Accepts a connection with the reserve descriptor, sends the reason of the refusal, and closes. The client may try
 * again later. Without this the loop would spin, because the listening socket stays readable. */
static void refuse_next(struct ll_door *door)
{
	if (door->reserve_fd >= 0)
		close(door->reserve_fd);
	int fd = accept_next(door);
	if (fd >= 0) {
		say_full(fd, "loadlined has no descriptors left");
		close(fd);
	}
	door->reserve_fd = open_reserve();
}

/* Whether the other side is one too many of its user's, or has gone already without a word. */
static bool is_one_too_many(const struct ll_visitor *visitor, int fd)
{
	char byte;
	return (visitor->is_bounded && visitor->silent >= SILENT_MOST) ||
	       recv(fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void let_in(struct ll_server *server, int fd)
{
	uid_t uid = (uid_t)-1;
	bool is_foreign = ll_place_check_peer(fd, &uid) != 0 && !server->is_system;
	const struct ll_visitor *visitor = find_visitor(server, uid);
	if (!visitor || is_one_too_many(visitor, fd)) {
		close(fd);
	} else if (!ll_rights_have_room_at_door(server, uid)) {
		say_full(fd, "loadlined has as many connections and jobs of this user as one may have now");
		close(fd);
	} else if (!is_foreign || ll_connections_have_room(server)) {
		ll_connection_new(server, fd, uid);
	} else {
		server->bad_messages++;
		close(fd);
	}
}

static void on_listener(uv_poll_t *poll, int status, int events);

/* Returns false if nobody waits, or if there is no descriptor; the door then opens again in a second. */
static bool accept_one(struct ll_server *server)
{
	struct ll_door *door = &server->door;
	int fd = accept_next(door);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		refuse_next(door);
		if (door->reserve_fd >= 0)
			return true;
		door->is_paused = server->wants_tick = true;
		uv_poll_stop(&door->listener);
		return false;
	}
	if (fd < 0)
		return errno == ECONNABORTED || errno == EINTR;
	let_in(server, fd);
	return true;
}

static void on_listener(uv_poll_t *poll, int status, int events)
{
	struct ll_server *server = poll->data;
	uint64_t until_ns = ll_now_ns() + ACCEPT_NS;
	(void)status;
	(void)events;
	while (accept_one(server) && ll_now_ns() < until_ns)
		;
	server->wants_tick = true;
	ll_server_look(server);
}

bool ll_door_tick(struct ll_server *server)
{
	struct ll_door *door = &server->door;
	if (door->is_paused) {
		if (door->reserve_fd < 0)
			door->reserve_fd = open_reserve();
		door->is_paused = uv_poll_start(&door->listener, UV_READABLE, on_listener) != 0;
	}
	forget_visitors(door);
	return door->is_paused;
}

/* ---- start and end ---- */

static void on_turn(uv_prepare_t *prepare)
{
	struct ll_server *server = prepare->data;
	server->door.turn++;
}

int ll_door_open(struct ll_server *server, int listen_fd)
{
	struct ll_door *door = &server->door;
	door->listen_fd = listen_fd;
	door->reserve_fd = open_reserve();
	door->turn = 1;
	door->listener.data = door->prepare.data = server;
	uv_prepare_init(&server->loop, &door->prepare);
	uv_prepare_start(&door->prepare, on_turn);
	int rc = uv_poll_init(&server->loop, &door->listener, listen_fd);
	return rc ? rc : uv_poll_start(&door->listener, UV_READABLE, on_listener);
}

void ll_door_close(struct ll_server *server)
{
	struct ll_door *door = &server->door;
	uv_close((uv_handle_t *)&door->listener, NULL);
	uv_close((uv_handle_t *)&door->prepare, NULL);
	forget_visitors(door);
	if (door->reserve_fd >= 0)
		close(door->reserve_fd);
}

/* ---- sockets that the other side has not read ---- */

struct ll_unread {
	struct ll_unread *next;
	int fd;
	uint32_t uid, sent;
};

static bool has_unread(int fd)
{
	int bytes = 0;
	return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes;
}

void ll_unread_close(struct ll_server *server, int fd, uint32_t uid, uint32_t sent)
{
	struct ll_unread *unread = sent && has_unread(fd) ? malloc(sizeof *unread) : NULL;
	if (!unread) {
		close(fd);
		return;
	}
	shutdown(fd, SHUT_RDWR);
	*unread = (struct ll_unread){server->unread, fd, uid, sent};
	server->unread = unread;
	server->wants_tick = true;
}

void ll_unread_count(const struct ll_unread *first, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data)
{
	for (const struct ll_unread *unread = first; unread; unread = unread->next)
		count(data, unread->uid, 1 + (uint64_t)unread->sent);
}

bool ll_unread_tick(struct ll_server *server)
{
	struct ll_unread **at = &server->unread;
	while (*at) {
		struct ll_unread *unread = *at;
		if (has_unread(unread->fd)) {
			at = &unread->next;
			continue;
		}
		*at = unread->next;
		close(unread->fd);
		free(unread);
	}
	return server->unread;
}

void ll_unread_fini(struct ll_server *server)
{
	while (server->unread) {
		struct ll_unread *next = server->unread->next;
		close(server->unread->fd);
		free(server->unread);
		server->unread = next;
	}
}
