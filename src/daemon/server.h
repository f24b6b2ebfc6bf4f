/*
 * server.h - loadlined: one loop that accepts connections, keeps the books, and ends when nobody needs it.
 *
 * Nothing in it waits: each socket is non-blocking, and no function of a driver is called. A connection that does not
 * read its answers is not read from either, so it costs no memory. The loop watches descriptors only (uv_poll).
 */
#ifndef LOADLINE_DAEMON_SERVER_H
#define LOADLINE_DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/books.h"
#include "daemon/cards.h"
#include "daemon/residency.h"
#include "protocol/place.h"
#include "protocol/start.h"

struct ll_err;
struct ll_connection;
struct ll_user;

struct ll_server {
	uv_loop_t loop;
	uv_poll_t listener;
	int listen_fd, reserve_fd; /* reserve: closed for a moment to accept and refuse, when there is no other left */
	bool is_listener_paused;
	uv_timer_t idle_exit;
	uv_timer_t tick; /* once a second, while something must be asked again and again */
	bool wants_tick;
	struct ll_books books;
	struct ll_cards cards;
	struct ll_residency_books residency;
	struct ll_user *users;
	uint64_t last_user;
	uint64_t namespaces; /* of this process (process_id.h) */
	bool has_own_proc;
	uv_timer_t memory_timer; /* memory.h */
	struct ll_connection *connections;
	uint32_t connection_count, watcher_count; /* watchers are connections that do not keep the daemon from ending */
	uint64_t instance, bad_messages, born_ns;
	const char *version;
	struct ll_place place;
	struct ll_programs programs;
	bool is_system; /* serves all users (rights.h), and until it is ended */
	/* of a user's: where the system's would be, for which it makes room; empty: there is no such place */
	struct ll_place system_place;
	uv_timer_t room; /* looks for it */
};

struct ll_server_config {
	int listen_fd; /* becomes the server's */
	const char *version;
	struct ll_place place;
	struct ll_programs programs;  /* of no use for the system's: it starts none */
	struct ll_place system_place; /* of a user's: see struct ll_server */
	bool is_system;
};

/* Serves until nobody has needed it for 2 s, or it has handed over to a newer version, or the system's serves; the
 * system's until it is ended. */
int ll_server_run(const struct ll_server_config *config, struct ll_err *err);

/* ---- between the files of this folder ---- */

/* Takes the accepted socket, whose other side has that uid. */
void ll_connection_new(struct ll_server *server, int fd, uint32_t uid);

/* Closes it, and tells the keeper of its job. */
void ll_connection_close(struct ll_connection *connection);

/* Closes connections that have said nothing for too long. Returns whether there are any that may yet. */
bool ll_connections_tick(struct ll_server *server);

/* Something changed: starts or stops the idle_exit and the tick. */
void ll_server_look(struct ll_server *server);

/* Fills in what the daemon says of itself. */
void ll_server_describe(const struct ll_server *server, struct ll_message_welcome *welcome);

/* Stops listening and serving. */
void ll_server_stop(struct ll_server *server);

/*
 * A monitor registers its job. process_fd and lifeline_fd become the keeper's on success alone; monitor_fd is
 * copied. It may be a job that is known and has lost its monitor or its connection. -EBUSY: another process is its
 * monitor. -EPERM: it is another user's job. -EBADMSG: the pages are not this job's.
 */
struct ll_job_call {
	struct ll_connection *connection;
	const struct ll_job_facts *facts;
	int monitor_fd, process_fd, lifeline_fd;
	const int *page_fds; /* of a former daemon's page and orders, copied; NULL: there are none */
};
int ll_keeper_register(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job);

/* A job that the daemon before has left (store.h), without a monitor. process_fd and lifeline_fd may be -1: their other
 * side has ended; on success they become the keeper's. Errors as above. */
int ll_keeper_restore(struct ll_server *server, const struct ll_job_call *call);

/* The connection of the job's monitor is gone. */
void ll_keeper_disconnect(struct ll_server *server, struct ll_job *job);

/* The monitor saw the job's end. */
void ll_keeper_end(struct ll_server *server, struct ll_job *job);

/* Whether all processes of the job have ended. The monitor may not have said so yet. */
bool ll_keeper_has_tree_ended(const struct ll_job *job);

/* Returns the number of the job's monitor; 0: it has none, or is not seen from here. */
uint32_t ll_keeper_monitor_pid(const struct ll_job *job);

/* Returns the job's flags, those of its monitor included. */
uint32_t ll_keeper_flags(const struct ll_job *job);

/* Looks after jobs whose monitor has no connection. Returns whether there are any. */
bool ll_keepers_tick(struct ll_server *server);

void ll_keepers_fini(struct ll_server *server);

#endif
