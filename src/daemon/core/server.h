/*
 * server.h - loadlined: one loop that accepts connections, keeps the books, and ends when nobody needs it.
 *
 * The loop never blocks: each socket is non-blocking, and loadlined calls no driver. If a connection does not read its
 * replies, loadlined does not read from it either, so it uses no memory. The loop watches only descriptors (uv_poll).
 * Only the accounts use libuv's threads, because the disk may be slow (accounts/write.h, accounts/reports.h).
 */
#ifndef LOADLINE_DAEMON_CORE_SERVER_H
#define LOADLINE_DAEMON_CORE_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/arbiter/cards.h"
#include "daemon/core/door.h"
#include "daemon/core/subordinate.h"
#include "daemon/jobs/books.h"
#include "daemon/machine/keeper_link.h"
#include "daemon/policy/policy.h"
#include "daemon/residency/residency.h"
#include "protocol/place.h"
#include "protocol/start.h"

struct ll_err;
struct ll_connection;
struct ll_user;
struct ll_machine;
struct ll_ungoverned;
struct ll_accounting;
struct ll_admission;
struct ll_notify_link;
struct ll_job_watch;
struct ll_unread;
struct ll_health_card;

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
	struct ll_unread *unread; /* unread.h */
	struct ll_user *users;
	struct ll_machine *machine;       /* machine.h */
	struct ll_ungoverned *ungoverned; /* ungoverned.h */
	struct ll_admission *admission;   /* admission.h */
	uint64_t last_user;
	uint64_t namespaces; /* of this process (process_id.h) */
	bool has_own_proc;
	uv_timer_t memory_timer; /* memory.h */
	struct ll_connection *connections;
	uint32_t connection_count, watcher_count; /* watchers do not keep the daemon from ending */
	uint64_t instance, bad_messages, born_ns;
	const char *version;
	struct ll_place place;
	struct ll_programs programs;
	bool is_system; /* serves all users (rights.h), until it is stopped */
	/* of a user's daemon: the system's place, for which it makes room; empty: there is no such place */
	struct ll_place system_place;
	struct ll_keeper_link keeper;
	uv_timer_t room;                   /* checks whether the system's daemon serves */
	struct ll_department department;   /* of the system's daemon */
	struct ll_reload *reload;          /* reload.h; NULL: no reading of the configuration is possible */
	struct ll_accounting *accounting;  /* of the system's daemon; NULL: nothing is written */
	struct ll_notify_link *notify;     /* notify_link.h; NULL: events go to no command */
	struct ll_health_card *health;     /* health.h */
	struct ll_job_watch *watch;        /* job_watch.h; NULL: a user's daemon */
	struct ll_report_reading *reports; /* that are being read or sent (reports.h) */
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
 * A monitor registers its job. On success, the job owns process_fd and lifeline_fd; monitor_fd is copied. The job
 * may be known already, if it has lost its monitor or its connection. -EBUSY: another process is its monitor. -EPERM:
 * it is another user's job. -EBADMSG: the pages are not this job's.
 */
struct ll_job_call {
	struct ll_connection *connection;
	const struct ll_job_facts *facts;
	const char *department_tenant; /* policy/policy_of_jobs.h */
	const char *project, *name;    /* empty: none */
	uint64_t said;                 /* as in struct ll_message_job */
	int monitor_fd, process_fd, lifeline_fd;
	const int *page_fds; /* page and orders of a former daemon, copied; NULL: there are none */
};
int ll_job_register(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job);

/* Before that: an unknown job that brings its pages has the limits that these have, since they may have been set after
 * its first registration. Writes them into the facts. -EBADMSG: the pages are not the job's user's. */
int ll_job_read_brought(const struct ll_server *server, const struct ll_job_call *call, struct ll_job_facts *facts);

/* Registers a job of a former daemon (store.h), without a monitor. process_fd and lifeline_fd may be -1, if their other
 * side has ended; on success the job owns them. Errors as above. */
int ll_job_restore(struct ll_server *server, const struct ll_job_call *call);

/* The connection of the job's monitor has ended. */
void ll_job_disconnect(struct ll_server *server, struct ll_job *job);

/* The monitor has reported the job's end: the processes that it knows have ended. A job with a control group ends when
 * its group is empty. */
void ll_job_end(struct ll_server *server, struct ll_job *job);

/* The job does not end, and cannot be ended: removes it from the books, without its monitor. */
void ll_job_abandon(struct ll_server *server, struct ll_job *job);

/* The keeper's reply about the group of an ended job. is_to_ask_again: the group is not empty, or the
 * keeper has ended. */
void ll_job_on_group_removed(struct ll_server *server, struct ll_job *job, bool is_to_ask_again);

/* Whether all processes of the job have ended. The monitor may not have reported it yet. */
bool ll_job_has_tree_ended(const struct ll_job *job);

/* Returns the pid of the job's monitor; 0: it has none, or the daemon does not see it. */
uint32_t ll_job_monitor_pid(const struct ll_job *job);

/* Returns the job's flags, those of its monitor included. */
uint32_t ll_job_flags(const struct ll_job *job);

/* Checks jobs whose monitor has no connection, and those that are stopped without a place in the queue. Returns whether
 * there are any. */
bool ll_jobs_tick(struct ll_server *server);

void ll_jobs_fini(struct ll_server *server);

#endif
