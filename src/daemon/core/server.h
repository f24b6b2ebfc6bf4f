/*
 * server.h - loadlined: one loop that accepts connections, keeps the books, and ends when nobody needs it.
 *
 * The loop never blocks: each socket is non-blocking, and loadlined calls no driver. If a connection does not read its
 * replies, loadlined does not read from it either, so it uses no memory. The loop watches only descriptors (uv_poll).
 * Only the accounts use libuv's threads, because the disk may be slow (accounts/write.c, reports.c).
 */
#ifndef LOADLINE_DAEMON_CORE_SERVER_H
#define LOADLINE_DAEMON_CORE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/arbiter/cards.h"
#include "daemon/jobs/jobs.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/residency/residency.h"
#include "protocol/place.h"
#include "protocol/start.h"

struct ll_accounting;
struct ll_admission;
struct ll_connection;
struct ll_err;
struct ll_health_card;
struct ll_job;
struct ll_job_watch;
struct ll_machine;
struct ll_notify_link;
struct ll_server;
struct ll_ungoverned;
struct ll_unread;
struct ll_user;

/*
 * door.c: lets connections in, fairly among users.
 *
 * A listener has one queue for all who connect, and the kernel turns away who finds it full. So loadlined empties it
 * fast, and chooses afterwards: of one user, the subordinate uids (identity.c) included, at most 64 connections may
 * wait until they say HELLO or it is read. What is beyond is closed at once; the client tries again
 * (protocol/client.h). The queue of the system's loadlined is short, because each one waits there for all before it;
 * clients wait for a place in it (ll_place_connect_by).
 *
 * Each user has some time in each turn of the loop. When it is used up, what the user's connections say waits for the
 * next turn, and so for the connections of all others.
 *
 * Root and loadlined's own user have neither bound. Nor has anybody in a user's daemon, which has another one for
 * other users (ll_connections_have_room).
 */

/* A user who has connections, or had some a moment ago. */
struct ll_visitor {
	struct ll_visitor *next;
	uint32_t owner; /* identity.c */
	bool is_bounded;
	uint32_t connections, silent; /* silent: HELLO has not been read */
	uint64_t turn, spent_ns;      /* spent_ns: in that turn */
	size_t row_bytes;             /* of rows that wait until they are read */
};

struct ll_door {
	uv_poll_t listener;
	uv_prepare_t prepare;
	int listen_fd;
	int reserve_fd; /* closed for a moment to accept and refuse a connection when no descriptor is left */
	bool is_paused; /* no descriptor was left even so: the door opens again in a second */
	uint64_t turn;  /* of the loop, from 1 */
	struct ll_visitor *visitors;
	/* what was counted last for a connection of this turn (rights.c), with those that were let in since */
	uint64_t room_turn;
	uint32_t room_owner;
	struct ll_fair_room room;
};

/* Opens the door: listen_fd listens. Returns 0 or an error of libuv. */
int ll_door_open(struct ll_server *server, int listen_fd);

/* Closes it with its descriptors. */
void ll_door_close(struct ll_server *server);

/* Once a second. Returns whether there is something to do in a second. */
bool ll_door_tick(struct ll_server *server);

/* Of a connection, which counts as silent from here on. NULL: no memory. */
struct ll_visitor *ll_door_enter(struct ll_server *server, uint32_t uid);
void ll_door_leave(struct ll_visitor *visitor, bool is_silent);

/* Whether the user's connections may be read in this turn. spend: handling one took so long. */
bool ll_door_has_time(const struct ll_server *server, const struct ll_visitor *visitor);
void ll_door_spend(const struct ll_server *server, struct ll_visitor *visitor, uint64_t spent_ns);

/* ---- server.c ---- */

struct ll_server {
	uv_loop_t loop;
	struct ll_door door;
	uv_timer_t idle_exit;
	uv_timer_t tick; /* once a second, while something must be polled */
	bool wants_tick;
	struct ll_books books;
	struct ll_cards cards;
	struct ll_residency_books residency;
	struct ll_subordinates subordinates;
	struct ll_unread *unread; /* door.c */
	struct ll_user *users;
	struct ll_machine *machine;       /* machine.h */
	struct ll_ungoverned *ungoverned; /* ungoverned.c */
	struct ll_admission *admission;   /* queue.h */
	uint64_t last_user;
	uint64_t namespaces; /* of this process (process_id.h) */
	bool has_own_proc;
	uv_timer_t memory_timer; /* memory.c */
	uv_timer_t minutes;      /* accounts/minute.c */
	uint64_t minutes_ns;     /* when it looked last */
	struct ll_connection *connections;
	uint32_t connection_count, watcher_count; /* watchers do not keep the daemon from ending */
	uint64_t instance, bad_messages, born_ns;
	const char *version;
	struct ll_place place;
	struct ll_programs programs;
	bool is_system; /* serves all users (rights.c), until it is stopped */
	/* of a user's daemon: the system's place, for which it makes room; empty: there is no such place */
	struct ll_place system_place;
	struct ll_keeper_link keeper;
	uv_timer_t room;                   /* checks whether the system's daemon serves */
	struct ll_department department;   /* of the system's daemon */
	struct ll_reload *reload;          /* NULL: no reading of the configuration is possible */
	struct ll_accounting *accounting;  /* of the system's daemon; NULL: nothing is written */
	struct ll_notify_link *notify;     /* links.c; NULL: events go to no command */
	struct ll_health_card *health;     /* machine.c */
	struct ll_job_watch *watch;        /* job_watch.c; NULL: a user's daemon */
	struct ll_report_reading *reports; /* that are being read or sent (reports.c) */
};

struct ll_server_config {
	int listen_fd; /* the server owns it */
	const char *version;
	struct ll_place place;
	struct ll_programs programs;  /* unused by the system's daemon, which starts no programs */
	struct ll_place system_place; /* of a user's daemon: see struct ll_server */
	bool is_system;
	bool has_policy;          /* the system's daemon reads a configuration */
	const char *policy_path;  /* as ll_department_load has it */
	uint32_t admin;           /* a uid that is an admin besides root; 0: none is */
	const char *state_folder; /* of the system's daemon: where the accounts are; NULL: there are none */
};

/* Serves until nobody has needed it for 2 s, until it has handed over to a newer version, or until the system's daemon
 * serves. The system's daemon serves until it is stopped. -EINVAL: the configuration has faults, and nothing was
 * served.
 */
int ll_server_run(const struct ll_server_config *config, struct ll_err *err);

/* ---- between the files of this folder ---- */

/* Takes over an accepted socket, whose other side has that uid. */
void ll_connection_new(struct ll_server *server, int fd, uint32_t uid);

/* Closes the connection, and tells the upkeep of its job. */
void ll_connection_close(struct ll_connection *connection);

/* Closes connections that have been silent for too long. Returns whether there are any that may become so. */
bool ll_connections_tick(struct ll_server *server);

/* Reads the connections of the user that waited for a lookup of the user's groups. A command waits no longer than until
 * the lookup is slow: it is answered as somebody who is in no group. */
void ll_connections_resume(struct ll_server *server, uint32_t uid, enum ll_identity_news news);

/* Something has changed: starts or stops idle_exit and the tick. */
void ll_server_look(struct ll_server *server);

/* Fills in the daemon's description of itself. */
void ll_server_describe(const struct ll_server *server, struct ll_message_welcome *welcome);

/* Stops listening and serving. */
void ll_server_stop(struct ll_server *server);

/*
 * door.c: descriptors that were sent on a connection which has ended, and that the other side has not read.
 *
 * The kernel counts descriptors in messages that nobody has read as the sender's user's, and sends no more for anybody
 * if there are too many. They are there until the other side reads them or closes its socket. So a user could end one
 * connection after the other with unread messages. The socket of such a connection stays open here until then, so that
 * its descriptors count for its user (rights.c).
 */

/* Closes the socket of a connection that has ended, at once or when the other side has read all. uid: of the other
 * side. sent: how many descriptors were sent since the other side had read all. */
void ll_unread_close(struct ll_server *server, int fd, uint32_t uid, uint32_t sent);

/* Calls count for each such socket, with what it takes of descriptors. */
void ll_unread_count(const struct ll_unread *first, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data);

/* Closes the sockets of which all has been read. Returns whether any are left. */
bool ll_unread_tick(struct ll_server *server);

void ll_unread_fini(struct ll_server *server);

/*
 * system.c, first: the listening socket of the system's loadlined, and the user that it runs as.
 *
 * systemd passes the socket (LISTEN_FDS). If loadlined is started by hand, it makes the socket itself: as root, in a
 * folder that root owns. Then it becomes an ordinary user, so that no root process parses messages of other users.
 */

/* Finds the account; -ENOENT: there is no such name. */
struct ll_system_user {
	uid_t uid;
	gid_t gid;
};
int ll_system_user_find(const char *name, struct ll_system_user *ret_user, struct ll_err *err);

/* Becomes that user, without supplementary groups. The process cannot become root again. */
int ll_system_user_become(const struct ll_system_user *user, struct ll_err *err);

/* The socket that systemd passed to this process; -1: it passed none. It is closed on exec, and does not block. */
int ll_system_socket_passed(void);

/*
 * Makes the folder if it is missing, and the socket file in it; every user may connect. owner: of the file; NULL: this
 * user. A lock keeps other processes from doing the same until this one ends. The socket does not listen yet.
 * -EADDRINUSE: another process serves there. -EPERM: other users may write to the folder.
 */
int ll_system_socket_bind(const struct ll_place *place, const struct ll_system_user *owner, int *ret_fd,
			  struct ll_err *err);

/*
 * system.c, then: what the system's loadlined stores with systemd, so that the next daemon has all jobs at once. That
 * includes jobs whose monitors are stopped, frozen or dead, of which the monitors alone would make jobs without limits
 * of time and compute. For each job it stores a socket (sd_notify's FDSTORE), in which the message waits that the
 * monitor would send. systemd returns the sockets by LISTEN_FDS.
 *
 * Without systemd, or if its store is full, all functions do nothing: the monitors then register the jobs again.
 */

/* Store a new job, and remove an ended one. */
void ll_store_add(const struct ll_server *server, const struct ll_job *job);
void ll_store_remove(const struct ll_server *server, const struct ll_job *job);

/* Takes over the jobs of the former daemon. Their monitors may connect later. */
void ll_store_restore(struct ll_server *server);

/* Tells systemd that this process serves. */
void ll_store_say_ready(const struct ll_server *server);

#endif
