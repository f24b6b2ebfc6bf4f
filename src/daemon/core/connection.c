/* One connection: handles its messages in their order, and sends the replies. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/queue.h"

enum { MESSAGES_AT_A_TIME = 16 }; /* after these, other connections are handled */
enum { FOREIGN_MAX = 64 };
#define HELLO_MS UINT64_C(5000)

/* ---- sending ---- */

static void look_at_socket(struct ll_connection *connection);

/* Keeps the message, with copies of the descriptors. Returns false if it cannot. */
static bool keep_message(struct ll_connection *connection, const union ll_message *message, const int *fds,
			 size_t count)
{
	connection->pending_fd_count = 0;
	for (size_t i = 0; i < count; i++) {
		connection->pending_fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (connection->pending_fds[i] < 0) {
			ll_message_close_fds(connection->pending_fds, i);
			return false;
		}
	}
	connection->pending = *message;
	connection->pending_fd_count = count;
	connection->has_pending = true;
	return true;
}

/* Counts descriptors that were sent, until the peer has read all. The kernel refuses to send descriptors to anybody if
 * too many of this process's user have not been read. Returns false if the peer's user has too many. */
static bool count_sent(struct ll_connection *connection, size_t count)
{
	int unread = 1;
	if (!count)
		return true;
	if (connection->sent_fds && ioctl(connection->fd, SIOCOUTQ, &unread) == 0 && !unread)
		connection->sent_fds = 0;
	connection->sent_fds += (uint32_t)count;
	bool has_room = ll_rights_have_room(connection->server, connection->uid);
	connection->sent_fds -= has_room ? 0 : (uint32_t)count; /* they are not sent */
	return has_room;
}

/* Other errors than a full socket are noticed when the socket is read. */
static void send_or_keep(struct ll_connection *connection, const union ll_message *message, const int *fds,
			 size_t count)
{
	if (!count_sent(connection, count)) {
		shutdown(connection->fd, SHUT_RDWR);
		return;
	}
	int rc = ll_message_send(connection->fd, message, fds, count);
	bool must_wait = rc == -EAGAIN || rc == -ENOBUFS || rc == -ENOMEM || rc == -ETOOMANYREFS;
	if (must_wait && !keep_message(connection, message, fds, count))
		shutdown(connection->fd, SHUT_RDWR);
}

void ll_connection_reply(struct ll_connection *connection, union ll_message *message, const int *fds, size_t count)
{
	message->header.serial = connection->serial;
	send_or_keep(connection, message, fds, count);
}

void ll_connection_refuse(struct ll_connection *connection, int code, const char *reason)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = code;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, reason);
	ll_connection_reply(connection, &message, NULL, 0);
}

static void send_pending(struct ll_connection *connection)
{
	union ll_message message = connection->pending;
	int fds[LL_MESSAGE_FDS];
	size_t count = connection->pending_fd_count;
	memcpy(fds, connection->pending_fds, sizeof fds);
	connection->has_pending = false;
	connection->pending_fd_count = 0;
	send_or_keep(connection, &message, fds, count);
	ll_message_close_fds(fds, count);
}

/* ---- rows ---- */

static void drop_rows(struct ll_connection *connection)
{
	connection->visitor->row_bytes -= connection->rows.length;
	ll_strbuf_fini(&connection->rows);
	connection->rows = (struct ll_strbuf)LL_STRBUF_INIT;
	connection->rows_sent = 0;
}

bool ll_connection_row(struct ll_connection *connection, union ll_message *row)
{
	if (!ll_rights_trim(connection, row))
		return false;
	if (!connection->has_pending && !connection->rows.length) {
		ll_connection_reply(connection, row, NULL, 0);
		return true;
	}
	row->header.serial = connection->serial;
	size_t before = connection->rows.length;
	ll_strbuf_add(&connection->rows, (const char *)row, row->header.size);
	connection->visitor->row_bytes += connection->rows.length - before;
	if (connection->rows.failed)
		shutdown(connection->fd, SHUT_RDWR);
	return true;
}

bool ll_connection_row_of(struct ll_connection *connection, uint32_t uid, union ll_message *row)
{
	connection->row_uid = uid;
	return ll_connection_row(connection, row);
}

/* ---- watching connections ---- */

/* Returns the next job whose pages the connection has not got and may see. The pages contain the job's token. NULL: it
 * has all. */
static const struct ll_job *find_unwatched(const struct ll_connection *connection)
{
	const struct ll_job *job = ll_books_after(&connection->server->books, connection->watched);
	while (job && !ll_rights_over(connection, job))
		job = job->next;
	return job;
}

/* Sends the pages of the next job. Returns false if there is none. */
static bool send_page(struct ll_connection *connection)
{
	const struct ll_job *job = find_unwatched(connection);
	union ll_message message;
	int fds[2];
	if (!job)
		return false;
	connection->watched = job->number;
	if (ll_pages_share(&job->pages, false, fds)) {
		shutdown(connection->fd, SHUT_RDWR); /* the peer connects again */
		return false;
	}
	ll_message_init(&message, LL_MESSAGE_PAGE);
	message.header.serial = connection->watch_serial;
	message.page.job_number = job->number;
	send_or_keep(connection, &message, fds, 2);
	ll_message_close_fds(fds, 2);
	return true;
}

void ll_watchers_look(struct ll_server *server)
{
	for (struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		if (connection->is_watching)
			look_at_socket(connection);
	}
}

/* Closes a connection whose peer does not read its messages. The peer connects again, and gets all pages anew. */
void ll_watchers_tell_end(struct ll_server *server, uint64_t job_number)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_PAGE_GONE);
	message.page.job_number = job_number;
	for (struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		if (!connection->is_watching || connection->watched < job_number)
			continue;
		message.header.serial = connection->watch_serial;
		if (connection->has_pending || ll_message_send(connection->fd, &message, NULL, 0))
			shutdown(connection->fd, SHUT_RDWR);
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

/* Returns 0 after a message, -EAGAIN if there is none, and any other error if the connection must be closed. */
static int receive_message(struct ll_connection *connection)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	int rc = ll_message_receive(connection->fd, &message, fds, &count);
	if (rc == -ENOTSUP) {
		connection->serial = message.header.serial;
		ll_connection_refuse(connection, -ENOTSUP, "this loadlined does not know that kind of message");
		return 0;
	}
	if (rc == -EMFILE)
		ll_connection_refuse(connection, -EMFILE, "loadlined has no descriptors left");
	if (!rc && !ll_call(connection, &message, fds, count))
		rc = -EPROTO;
	close_left(fds, count);
	connection->server->bad_messages += rc == -EPROTO;
	return rc;
}

/* Sends waiting messages, then rows of a reply, then pages. Returns true if the socket is full. */
static bool send_waiting(struct ll_connection *connection)
{
	union ll_message row;
	if (connection->has_pending)
		send_pending(connection);
	while (connection->rows_sent < connection->rows.length && !connection->has_pending) {
		const char *at = connection->rows.buf + connection->rows_sent;
		memcpy(&row.header, at, sizeof row.header);
		memcpy(&row, at, row.header.size);
		connection->rows_sent += row.header.size;
		send_or_keep(connection, &row, NULL, 0);
	}
	if (connection->rows.length && connection->rows_sent == connection->rows.length)
		drop_rows(connection);
	while (connection->is_watching && !connection->has_pending && send_page(connection))
		;
	return connection->has_pending;
}

static bool has_ended(const struct ll_connection *connection)
{
	char byte;
	return recv(connection->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* If the user's time in this turn of the loop is used up, the loop comes here again in the next one. The end of a
 * connection does not wait: its user may come again at once, and has the room that it had. */
static void on_event(uv_poll_t *poll, int status, int events)
{
	struct ll_connection *connection = poll->data;
	struct ll_server *server = connection->server;
	struct ll_visitor *visitor = connection->visitor;
	uint64_t begun_ns = ll_now_ns();
	(void)status;
	(void)events;
	int rc = 0;
	if (!ll_door_has_time(server, visitor) && !has_ended(connection))
		return;
	for (int i = 0; i < MESSAGES_AT_A_TIME && !rc && !send_waiting(connection) && !connection->is_parked; i++)
		rc = receive_message(connection);
	if (rc && rc != -EAGAIN) {
		ll_connection_close(connection);
	} else {
		look_at_socket(connection);
		ll_server_look(server);
	}
	ll_door_spend(server, visitor, ll_now_ns() - begun_ns);
}

/* If a connection does not read its replies, the loop only waits until it can write to it. libuv reports the end of the
 * connection in both cases. */
static void look_at_socket(struct ll_connection *connection)
{
	bool waits = send_waiting(connection);
	if (connection->is_parked && !waits)
		uv_poll_stop(&connection->poll);
	else
		uv_poll_start(&connection->poll, waits ? UV_WRITABLE : UV_READABLE, on_event);
}

/* A monitor waits longer than a command, which is asked by a person. */
static enum ll_identity_news patience_of(const struct ll_connection *connection)
{
	return connection->role == LL_ROLE_MONITOR ? LL_IDENTITY_IS_LATE : LL_IDENTITY_IS_SLOW;
}

void ll_connection_park(struct ll_connection *connection)
{
	struct ll_department *department = &connection->server->department;
	connection->is_parked = ll_department_policy(department) &&
				ll_identities_ask(&department->identities, connection->uid, patience_of(connection));
}

void ll_connections_resume(struct ll_server *server, uint32_t uid, enum ll_identity_news news)
{
	for (struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		bool is_patient = news == LL_IDENTITY_IS_SLOW && patience_of(connection) != news;
		if (!connection->is_parked || connection->uid != uid || is_patient)
			continue;
		connection->is_parked = false;
		look_at_socket(connection);
	}
}

void ll_connection_look(struct ll_connection *connection)
{
	look_at_socket(connection);
}

/* ---- start and end ---- */

static void free_connection(uv_handle_t *handle)
{
	struct ll_connection *connection = handle->data;
	ll_message_close_fds(connection->pending_fds, connection->pending_fd_count);
	ll_unread_close(connection->server, connection->fd, connection->uid, connection->sent_fds);
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
	server->watcher_count -= connection->is_watching;
	drop_rows(connection);
	ll_door_leave(connection->visitor, !connection->role);
	if (connection->job)
		ll_job_disconnect(server, connection->job);
	if (connection->user)
		ll_users_disconnect(server, connection->user);
	ll_residency_disconnect(server, connection);
	ll_admission_disconnect(server, connection);
	ll_machine_disconnect(server, connection);
	ll_report_disconnect(connection);
	if (connection->process_fd >= 0)
		close(connection->process_fd);
	uv_close((uv_handle_t *)&connection->poll, free_connection);
	ll_server_look(server);
}

void ll_connection_new(struct ll_server *server, int fd, uint32_t uid)
{
	struct ll_connection *connection = calloc(1, sizeof *connection);
	struct ll_visitor *visitor = connection ? ll_door_enter(server, uid) : NULL;
	if (!visitor || uv_poll_init(&server->loop, &connection->poll, fd)) {
		if (visitor)
			ll_door_leave(visitor, true);
		free(connection);
		close(fd);
		return;
	}
	connection->server = server;
	connection->visitor = visitor;
	connection->fd = fd;
	connection->uid = uid;
	connection->is_foreign = uid != geteuid() && !server->is_system;
	connection->process_fd = -1;
	connection->rows = (struct ll_strbuf)LL_STRBUF_INIT;
	connection->born_ms = uv_now(&server->loop);
	connection->poll.data = connection;
	connection->next = server->connections;
	server->connections = connection;
	server->connection_count++;
	server->wants_tick = true;
	look_at_socket(connection);
}

/* Whether the peer has not identified itself yet. A peer of another user must also have named its job. */
static bool is_unknown(const struct ll_connection *connection)
{
	return !connection->role || (connection->is_foreign && !connection->user && !connection->has_read);
}

bool ll_connections_have_room(const struct ll_server *server)
{
	unsigned count = 0;
	for (const struct ll_connection *connection = server->connections; connection; connection = connection->next)
		count += connection->is_foreign && is_unknown(connection);
	return count < FOREIGN_MAX;
}

bool ll_connections_tick(struct ll_server *server)
{
	bool is_needed = false;
	struct ll_connection *next;
	for (struct ll_connection *connection = server->connections; connection; connection = next) {
		next = connection->next;
		if (!is_unknown(connection))
			continue;
		if (uv_now(&server->loop) - connection->born_ms >= HELLO_MS)
			ll_connection_close(connection);
		else
			is_needed = true;
	}
	return is_needed;
}
