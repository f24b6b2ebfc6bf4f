/* One connection: its messages, in the order in which they come, and their answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "daemon/connection.h"
#include "daemon/listing.h"

enum { MESSAGES_AT_A_TIME = 16 }; /* then others have their turn */
#define HELLO_MS UINT64_C(5000)

/* ---- sending ---- */

static void look_at_socket(struct ll_connection *connection);

/* Sends, or keeps the message until the socket has room. There is one at most: while it waits nothing is read. */
static void answer(struct ll_connection *connection, union ll_message *message)
{
	message->header.serial = connection->serial;
	int rc = ll_message_send(connection->fd, message, NULL, 0);
	if (rc == -EAGAIN || rc == -ENOBUFS || rc == -ENOMEM) {
		connection->pending = *message;
		connection->has_pending = true;
	}
	/* Any other error is seen when the socket is read. */
}

static void refuse(struct ll_connection *connection, int code, const char *reason)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = code;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, reason);
	answer(connection, &message);
}

/* ---- what each message does; false: it is wrong here, and the connection ends ---- */

static bool say_welcome(struct ll_connection *connection)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_WELCOME);
	ll_server_describe(connection->server, &message.welcome);
	answer(connection, &message);
	return true;
}

static bool take_hello(struct ll_connection *connection, const struct ll_message_hello *hello, int *fds, size_t count)
{
	if (connection->role || count > 1 || (count && !ll_process_is_valid(fds[0])))
		return false;
	connection->role = hello->role;
	if (count) {
		connection->process_fd = fds[0];
		fds[0] = -1;
	} else {
		connection->process_fd = ll_process_of_peer(connection->fd);
	}
	return say_welcome(connection);
}

static bool is_pipe(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static uint32_t peer_uid(const struct ll_connection *connection)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	return getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.uid : geteuid();
}

static bool take_job(struct ll_connection *connection, struct ll_job_facts *facts, int *fds, size_t count)
{
	struct ll_job *job;
	union ll_message message;
	if (connection->role != LL_ROLE_MONITOR || connection->job || count != 2 || !ll_process_is_valid(fds[0]) ||
	    !is_pipe(fds[1]) || facts->state == LL_JOB_ENDED)
		return false;
	if (connection->process_fd < 0) {
		refuse(connection, -ESRCH, "a monitor that cannot be watched");
		return true;
	}
	facts->uid = peer_uid(connection);
	facts->pid = (uint32_t)ll_process_id(fds[0]);
	struct ll_job_call call = {connection, facts, connection->process_fd, fds[0], fds[1]};
	int rc = ll_keeper_register(connection->server, &call, &job);
	if (rc) {
		refuse(connection, rc, rc == -EBUSY ? "another monitor has the job" : strerror(-rc));
		return true;
	}
	fds[0] = fds[1] = -1;
	connection->job = job;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	message.accepted.number = job->number;
	answer(connection, &message);
	return true;
}

static bool take_job_ended(struct ll_connection *connection, const struct ll_message_job_ended *ended)
{
	struct ll_job *job = connection->job;
	if (!job || memcmp(job->facts.token, ended->token, sizeof ended->token) != 0)
		return false;
	connection->job = NULL;
	ll_keeper_end(connection->server, job);
	return true;
}

static bool take_list(struct ll_connection *connection)
{
	connection->is_listing = true;
	connection->listing = (struct ll_listing){0};
	return true;
}

static bool take_handover(struct ll_connection *connection, const struct ll_message_handover *handover)
{
	struct ll_server *server = connection->server;
	union ll_message message;
	if (handover->version <= ll_version_number(server->version)) {
		refuse(connection, -EPERM, "this loadlined is as new");
		return true;
	}
	ll_message_init(&message, LL_MESSAGE_HANDED_OVER);
	message.header.serial = connection->serial;
	if (ll_message_send(connection->fd, &message, &server->listen_fd, 1) == 0)
		ll_server_stop(server);
	else
		refuse(connection, -EAGAIN, "the listening socket could not be sent");
	return true;
}

static bool dispatch(struct ll_connection *connection, union ll_message *message, int *fds, size_t count)
{
	unsigned kind = message->header.kind;
	connection->serial = message->header.serial;
	if (kind == LL_MESSAGE_HELLO)
		return take_hello(connection, &message->hello, fds, count);
	if (!connection->role)
		return false;
	if (kind == LL_MESSAGE_JOB)
		return take_job(connection, &message->job.job, fds, count);
	if (count)
		return false;
	switch (kind) {
	case LL_MESSAGE_JOB_ENDED:
		return take_job_ended(connection, &message->job_ended);
	case LL_MESSAGE_LIST:
		return take_list(connection);
	case LL_MESSAGE_HANDOVER:
		return take_handover(connection, &message->handover);
	default:
		return false;
	}
}

/* ---- receiving ---- */

static void close_left(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* Returns 0 after a message, -EAGAIN if there is none, and any other error if the connection must end. */
static int receive(struct ll_connection *connection)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	int rc = ll_message_receive(connection->fd, &message, fds, &count);
	if (rc == -ENOTSUP) {
		connection->serial = message.header.serial;
		refuse(connection, -ENOTSUP, "this loadlined does not know that kind of message");
		return 0;
	}
	if (rc == -EMFILE)
		refuse(connection, -EMFILE, "loadlined has no descriptors left");
	if (!rc && !dispatch(connection, &message, fds, count))
		rc = -EPROTO;
	close_left(fds, count);
	connection->server->bad_messages += rc == -EPROTO;
	return rc;
}

/* Sends what waits, then rows of a list. True: the socket is full. */
static bool send_waiting(struct ll_connection *connection)
{
	if (connection->has_pending) {
		connection->has_pending = false;
		answer(connection, &connection->pending);
	}
	while (connection->is_listing && !connection->has_pending) {
		union ll_message message;
		connection->is_listing = ll_listing_next(connection->server, &connection->listing, &message);
		answer(connection, &message);
	}
	return connection->has_pending;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct ll_connection *connection = poll->data;
	(void)status;
	(void)events;
	int rc = 0;
	for (int i = 0; i < MESSAGES_AT_A_TIME && !rc && !send_waiting(connection); i++)
		rc = receive(connection);
	if (rc && rc != -EAGAIN) {
		ll_connection_close(connection);
		return;
	}
	look_at_socket(connection);
	ll_server_look(connection->server);
}

/* A connection that does not take its answers is watched for that alone. libuv reports its end in either case. */
static void look_at_socket(struct ll_connection *connection)
{
	bool waits = send_waiting(connection);
	uv_poll_start(&connection->poll, waits ? UV_WRITABLE : UV_READABLE, on_event);
}

/* ---- its life ---- */

static void free_connection(uv_handle_t *handle)
{
	struct ll_connection *connection = handle->data;
	close(connection->fd);
	free(connection);
}

void ll_connection_close(struct ll_connection *connection)
{
	struct ll_server *server = connection->server;
	struct ll_connection **at = &server->connections;
	while (*at != connection)
		at = &(*at)->next;
	*at = connection->next;
	server->connection_count--;
	if (connection->job)
		ll_keeper_disconnect(server, connection->job);
	if (connection->process_fd >= 0)
		close(connection->process_fd);
	uv_close((uv_handle_t *)&connection->poll, free_connection);
	ll_server_look(server);
}

void ll_connection_new(struct ll_server *server, int fd)
{
	struct ll_connection *connection = calloc(1, sizeof *connection);
	if (!connection || uv_poll_init(&server->loop, &connection->poll, fd)) {
		free(connection);
		close(fd);
		return;
	}
	connection->server = server;
	connection->fd = fd;
	connection->process_fd = -1;
	connection->born_ms = uv_now(&server->loop);
	connection->poll.data = connection;
	connection->next = server->connections;
	server->connections = connection;
	server->connection_count++;
	server->wants_tick = true;
	look_at_socket(connection);
}

bool ll_connections_tick(struct ll_server *server)
{
	bool is_needed = false;
	struct ll_connection *next;
	for (struct ll_connection *connection = server->connections; connection; connection = next) {
		next = connection->next;
		if (connection->role)
			continue;
		if (uv_now(&server->loop) - connection->born_ms >= HELLO_MS)
			ll_connection_close(connection);
		else
			is_needed = true;
	}
	return is_needed;
}
