/*
 * jobs.h - the list of tenants, their jobs, and the jobs' processes.
 *
 * A tenant is a name of one user, or a single job without a name. A job is what one `run` started. The books are plain
 * data, without clock or sockets. They close a row's descriptors when they remove the row.
 */
#ifndef LOADLINE_DAEMON_JOBS_JOBS_H
#define LOADLINE_DAEMON_JOBS_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/arbiter/cards.h"
#include "daemon/machine/machine.h"
#include "protocol/message.h"
#include "protocol/page.h"
#include "rules/explain/explain.h"

struct ll_connection;
struct ll_death_watch;
struct ll_job;
struct ll_job_card;
struct ll_job_claims;
struct ll_job_watch;
struct ll_server;
struct ll_share;
struct ll_upkeep;
struct ll_user;

/*
 * job_upkeep.c: ends a job: not its first process alone, but all that holds its place.
 *
 * All its processes get the signal of `reclaim: stop`, and after the grace SIGKILL, which is repeated until the job is
 * gone. The keeper sends them to the job's control group. Without a group the job's monitor sends them to the processes
 * that it finds (monitor/tree.c). Nobody can reach what is left then: loadlined forgets the job and gives its place
 * back, and what it still runs is outside of jobs (ungoverned.c).
 */

/* Zeroed: the job is not stopped. Times are ll_now_ns; 0: not yet. */
struct ll_job_stop {
	const char *why;    /* a phrase for the user, a literal; NULL: the job's time is over */
	uint64_t since_ns;  /* when it got its signal, and its grace began */
	uint64_t killed_ns; /* when it got SIGKILL first */
	uint64_t again_ns;  /* when it gets SIGKILL next */
	uint64_t asked_ns;  /* when the keeper was asked last */
};

/* What is due now: called at each look, about once a second. The job, and with it
 * `stop`, may be gone then. */
void ll_job_stop_step(struct ll_server *server, struct ll_job *job, struct ll_job_stop *stop);

/* The time between the two signals, by the configuration. */
uint64_t ll_job_stop_grace_ns(const struct ll_server *server);

/* The numbers of signals, by the index of ll_config_signals. */
extern const int ll_job_signals[];

/* Sends a signal to the job's first process, by its monitor. why: for the log. */
void ll_job_stop_warn(struct ll_server *server, const struct ll_job *job, int number, const char *why);

/*
 * pages.c: the daemon's side of the two files that a job shares with it (protocol/page.h).
 *
 * The daemon makes the files when the job registers. The job's monitor keeps descriptors of them too. A later daemon
 * gets the files from the monitor, and adopts them unchanged.
 */

struct ll_job_pages {
	int page_fd, orders_fd; /* both are writable */
	struct ll_page *page;   /* NULL: there are no files */
	struct ll_orders *orders;
};

/* Makes both files, with the limits of the facts. Returns -errno. */
int ll_pages_make(struct ll_job_pages *pages, const struct ll_job_facts *facts);

/*
 * Adopts the files that another daemon made: the page, the orders. The caller keeps its descriptors. The facts get the
 * limits that the orders have. facts.uid: the job's user. The files must belong to this process's user or to the job's
 * user; the job's own loadlined made the latter, before it made room for the system's. -EBADMSG: the files are not this
 * job's, have another version, or have impossible contents. Other errors: -errno.
 */
int ll_pages_adopt(struct ll_job_pages *pages, const int fds[2], struct ll_job_facts *facts);

/* Reads the limits of such files, before they are adopted. Errors as above. The user may be able to write them. */
int ll_pages_read_limits(const int fds[2], uint32_t uid, struct ll_limits *ret_limits);

/* Writes which daemon serves now, and wakes the threads that sleep on that. */
void ll_pages_announce(const struct ll_job_pages *pages, uint64_t instance);

/* Opens descriptors to pass on: the page as is_page_writable says, the orders read-only. The caller closes them.
 * Returns -errno. */
int ll_pages_share(const struct ll_job_pages *pages, bool is_page_writable, int ret_fds[2]);

/* Writes changed limits into the orders, and wakes the threads that sleep on them. */
void ll_pages_write_limits(const struct ll_job_pages *pages, const struct ll_limits *limits);

/* This daemon ends, and the job continues. The mappings become private copies, so later writes do not reach the job.
 * Returns -errno. */
int ll_pages_detach(struct ll_job_pages *pages);

/* Accepts pages that were never made. */
void ll_pages_close(struct ll_job_pages *pages);

/* ---- books.c ---- */

struct ll_tenant {
	struct ll_tenant *next;
	uint64_t number;
	char name[LL_NAME_SIZE];
	uint32_t uid;
	bool is_named;
	uint32_t jobs;
};

struct ll_job {
	struct ll_job *next;
	uint64_t number; /* by which everybody knows it; one that was in the queue has its number there */
	struct ll_job_facts facts;
	struct ll_tenant *tenant;
	char department_tenant[LL_NAME_SIZE]; /* the configured tenant (of_jobs.c); empty: none */
	char project[LL_NAME_SIZE];           /* for the accounts; empty: none */
	char name[LL_NAME_SIZE];              /* that its user gave it; empty: none */
	char pod[LL_POD_SIZE];                /* as in struct ll_message_job */
	int64_t began_s;                      /* since 1970; when this loadlined learnt of it */
	uint64_t refused_ns;                  /* when it was last refused memory beyond its limit; 0: never */
	unsigned noted_cards;                 /* + 1, when the accounts noted that it runs; 0: not yet */
	uint32_t status;                      /* of its first process, as waitpid() gives it */
	bool has_status;
	uint64_t said;   /* enum ll_set_field: the limits that the user gave, by `run` or `set` */
	int process_fd;  /* of its first process (process.h) */
	int lifeline_fd; /* readable end of a pipe whose other end the job's processes have */
	struct ll_job_pages pages;
	struct ll_job_claims *claims;      /* claims.c */
	unsigned place_tries;              /* requests to the keeper for it (job_group.c) */
	bool has_group;                    /* control group of its own (job_group.c) */
	char container[LL_CGROUP_SIZE];    /* the control group of its container; empty: it is none */
	bool is_group_lost;                /* the keeper could not signal it */
	struct ll_job_stop stop;           /* of a job without a place in the queue; why NULL: it is not stopped */
	uint64_t idle_told_ns, watched_ns; /* job_watch.c, job_watch.c; 0: not yet */
	struct ll_upkeep *upkeep;          /* job_upkeep.c: it watches the job; NULL: nothing yet */
};

struct ll_books {
	struct ll_tenant *tenants; /* in the order of their creation */
	struct ll_job *jobs;       /* in the order of their numbers */
	uint64_t last_job, last_tenant;
	uint32_t tenant_count, job_count;
};

/*
 * Adds a job without descriptors; the caller fills them in. Adds its tenant if that user has none of that name. number:
 * its number; 0, or one that a job has: the next one. -EEXIST: there is a job with this token[0]. -ENOMEM.
 */
int ll_books_add(struct ll_books *books, const struct ll_job_facts *facts, uint64_t number, struct ll_job **ret_job);

/* Finds a job by token[0] alone, which the job's processes know. */
struct ll_job *ll_books_find_id(const struct ll_books *books, uint64_t id);

/* Removes the job, and closes its descriptors. Removes the tenant if this was its last job. */
void ll_books_remove(struct ll_books *books, struct ll_job *job);

/* Returns the job of that number; NULL: there is none, as of number 0. */
struct ll_job *ll_books_find_number(const struct ll_books *books, uint64_t number);

/* Returns the first job with a higher number; NULL: there is none. */
struct ll_job *ll_books_after(const struct ll_books *books, uint64_t number);

/* The limits of a tenant are those of its first job. */
const struct ll_limits *ll_books_tenant_limits(const struct ll_books *books, const struct ll_tenant *tenant);

void ll_books_fini(struct ll_books *books);

/*
 * job_watch.c: looks at running jobs as the configuration says, and tells what it finds (events.c):
 *
 *   idle-holder     A job holds so much memory and has had no work for so long. Told once in `again`.
 *   endless-kernel  A process of a job has work on a card, nothing keeps it from running, and for so long none of it
 *                   has been completed. Told once; with the action stop, the job is stopped as one whose time is over.
 *   low-use         The jobs of a tenant, or of a user, have used too little of the card time that they held. A job
 *                   holds the cards of its place in the queue, and those on which it has a process, for its share of
 *                   compute. It uses a card while the card runs its kernels. The mean is over all jobs, over the
 *                   configured time. It is known when loadlined has counted for that long, and a tenant that held
 *                   cards for less than a tenth of it is left out. What is counted is lost when loadlined starts anew.
 *
 * It looks 4 times in the shortest of the configured times, but at least each 30 s and at most each 0.5 s, while there
 * are jobs.
 */

/* Of a job on a card, for job_watch.c. Zeroed when the job joins the card. */
struct ll_watched_card {
	uint64_t gpu_time_ns, grown_ns; /* grown_ns: when it was last more; 0: it was not read yet */
};

/* Of a claim. Zeroed at its begin. */
struct ll_watched_claim {
	uint64_t completed; /* launches and nanoseconds: a number that grows with each completed kernel */
	uint64_t since_ns;  /* since when it has had work, and completed none; 0: not looked at yet */
	bool is_told;
};

/* The last minute of a job on a card, for accounts/minute.c. Zeroed when the job joins the card. */
struct ll_minute_card {
	struct ll_minute minute;
	struct ll_minute_carry carry;
	struct ll_minute_step step;      /* of the present look */
	struct ll_job_card *next_active; /* that wants something in it */
	uint64_t work_ns;                /* at the last look */
	bool has_looked;
	uint32_t waiting_pid, waiting_for; /* as in the row of the card */
};

/* What accounts/minute.c read of a claim last, and how much longer it was than before. Zeroed at its begin. */
struct ll_minute_claim {
	uint64_t looked_ns; /* 0: never */
	uint64_t wanted_ns, copied_ns, completed, waited_ns[LL_WAITS];
	uint64_t wanted_new_ns, copied_new_ns, completed_new, waited_new_ns[LL_WAITS],
	    wait_ns;     /* wait_ns: of any kind */
	uint64_t cpu_ns; /* 0: not read in this gap */
	enum ll_minute_away away;
};

/* A user's loadlined has none: *ret_watch is NULL. -ENOMEM. */
int ll_job_watch_new(struct ll_server *server, struct ll_job_watch **ret_watch);

/* When the job last had work, or took its claim; UINT64_MAX: it has some now; 0: it has no claim. */
uint64_t ll_job_last_work_ns(const struct ll_job *job);
void ll_job_watch_free(struct ll_job_watch *watch); /* before the loop's last turn; NULL is fine */

/* Jobs or the configuration have changed: starts to look. NULL is fine. */
void ll_job_watch_wake(struct ll_job_watch *watch);

/*
 * claims.c: the cards that a job uses, and its processes on each of them.
 *
 * A claim is one process on one card: a slot of the job's page (protocol/page.h). A process can write the whole page of
 * its job. So the daemon keeps its own copy of its decisions, and a wrong value in a page can affect only the job of
 * that page.
 */

/* Memory of an ended process that the driver has not freed yet. */
struct ll_leaving {
	struct ll_leaving *next;
	uint32_t units;
	uint64_t until_ns;
};

/* A want in the slot that the daemon has read and not replied to. */
struct ll_want {
	uint32_t serial, units; /* units 0: there is none */
	uint64_t number;        /* grows over all wants of the job on the card */
	bool has_asked;
};

struct ll_job_claim {
	struct ll_job_claim *next; /* of the card; in the order of slots */
	struct ll_job_card *card;
	struct ll_user *user; /* NULL: the claim was adopted with a page, and its process is not known yet */
	struct ll_card_claim *share;
	unsigned slot;
	uint64_t token;
	/* memory.c: */
	uint32_t granted;
	uint32_t answered; /* serial of the last reply */
	uint32_t promised;
	uint64_t promised_until_ns;
	uint32_t asked; /* serial of its own reserve_asked */
	struct ll_want want;
	struct ll_watched_claim watched;
	struct ll_minute_claim minute;
};

struct ll_job_card {
	struct ll_job *job;
	unsigned index; /* in the page and in the orders */
	char uuid[LL_CARD_UUID_SIZE];
	struct ll_card_job *share;
	struct ll_account *account; /* owned by the accounting (accounts/write.c); NULL: none yet */
	struct ll_job_claim *claims;
	unsigned claim_count;
	/* memory.c: */
	struct ll_leaving *leaving; /* in the order of their ends */
	uint64_t last_want;
	uint64_t asking_until_ns; /* end of the present round of requests for reserves; 0: there is none */
	uint64_t due_ns;          /* when to decide about its memory again; 0: only when something changes */
	uint64_t repairs;         /* words of the page that another process had changed */
	struct ll_mismatch mismatch;
	struct ll_watched_card watched;
	struct ll_minute_card minute;
};

struct ll_job_claims {
	struct ll_job_card *cards[LL_PAGE_CARDS];
	struct ll_job_claim *slots[LL_PAGE_SLOTS];
	unsigned card_count, claim_count;
};

/*
 * Finds the job's card, or adds it. first_card: the UUID of the job's first card, which is added before; empty: none.
 * -ENOSPC: the page has no room for another card. -ENOMEM.
 */
int ll_job_card_get(struct ll_server *server, struct ll_job *job, const char *uuid, const char *first_card,
		    struct ll_job_card **ret_card);

/* Returns NULL if the job has no such card. */
struct ll_job_card *ll_job_card_find(const struct ll_job *job, const char *uuid);

/* What the process of a claim reports about itself. */
struct ll_claim_identity {
	int32_t pid;
	uint64_t namespaces, start_ticks;
};

/* Gives the process a slot. -ENOSPC: the page has no free slot. -ENOMEM. */
int ll_claims_grant(struct ll_server *server, struct ll_job_card *card, struct ll_user *user,
		    const struct ll_claim_identity *identity, struct ll_job_claim **ret_claim);

/* Returns the claim of that slot; NULL: the slot has another token, or none. */
struct ll_job_claim *ll_claims_find(const struct ll_job *job, unsigned slot, uint64_t token);

/* The process has sent WAKE: the daemon reads its slot. */
void ll_claims_wake(struct ll_server *server, struct ll_job_claim *claim);

/* Releases the slot. is_freed: its process has ended, and the driver has its memory back. Otherwise its used memory
 * stays in the books for a moment. */
void ll_claims_end(struct ll_server *server, struct ll_job_claim *claim, bool is_freed);

/* Makes cards and claims from the pages of a former daemon, if there are any. -ENOMEM. */
int ll_claims_adopt(struct ll_server *server, struct ll_job *job);

/* The job has ended: frees all its cards and claims. */
void ll_claims_fini(struct ll_server *server, struct ll_job *job);

struct ll_page_slot *ll_claim_slot(const struct ll_job_claim *claim);
void ll_claim_identify(const struct ll_job_claim *claim, struct ll_claim_identity *ret_identity);

/*
 * users.c: the processes that use cards, each with its claims (claims.c).
 *
 * A descriptor identifies a process, and reports its end. The end of a connection does not mean that the process has
 * ended: a program that closes all its descriptors lives, and connects again. After exec, a process connects again too,
 * and does not know its old slots: their claims end. If the new program does not use CUDA, its claims end when the word
 * `life` of one of its slots says so.
 */

struct ll_user {
	struct ll_user *next;
	uint64_t number; /* rises with each user */
	struct ll_server *server;
	struct ll_job *job;
	struct ll_connection *connection; /* NULL: none now */
	struct ll_death_watch *watch;
	uint32_t pid; /* as the daemon sees it; 0: not visible */
	struct ll_claim_identity identity;
	unsigned claims;
};

/* A process requests a new slot, or the slot that it has already (LL_MESSAGE_CLAIM). */
struct ll_claim_call {
	struct ll_connection *connection;
	int process_fd; /* copied */
	struct ll_job *job;
	const struct ll_message_claim *message;
};

/* -ESRCH: the process cannot be watched. -ESTALE: the slot is not the process's. -ENOSPC, -ENOMEM, -EMFILE. */
int ll_users_claim(struct ll_server *server, const struct ll_claim_call *call, struct ll_job_claim **ret_claim);

/* The connection of the user has ended. */
void ll_users_disconnect(struct ll_server *server, struct ll_user *user);

/* Releases the user after one of its claims has ended. */
void ll_user_drop(struct ll_user *user);

/* Returns the user of this process; NULL: the process has no claim, or is not visible to the daemon. A page may name a
 * process of another user, so a user of a job over which the connection has rights is preferred. */
struct ll_user *ll_users_find(const struct ll_connection *connection, int process_fd);

/* Stores what the driver's checkpoint did to the process. */
void ll_users_set_checkpoint(const struct ll_user *user, uint32_t state);

/* Finds the processes of the slots of adopted pages. Slots of ended processes are released. The other processes are
 * watched, whether they connect again or not. Returns whether the caller must call it again. */
bool ll_users_adopt(struct ll_server *server, struct ll_job *job);

/* Checks whether processes that cannot be watched have ended, and whether those without a connection have become
 * another program. Returns whether there are any. */
bool ll_users_reap(struct ll_server *server);

/* The periodic check of processes that cannot be watched. Returns whether there are any. */
bool ll_users_tick(struct ll_server *server);

/*
 * users.c: tells the loop that a process has ended.
 */

struct ll_death_watch {
	uv_poll_t poll;
	int fd; /* process.h */
	bool is_polled, has_started;
	void (*on_death)(void *data);
	void *data;
};

/* Makes a watch that is not started. The watch owns the descriptor. NULL: no memory; the caller keeps the
 * descriptor. */
struct ll_death_watch *ll_death_watch_new(uv_loop_t *loop, int fd, void (*on_end)(void *data), void *data);

/* Starts the watch: the loop calls on_death once. It never does so if the descriptor is not a pidfd; then call
 * ll_process_has_ended. */
void ll_death_watch_start(struct ll_death_watch *watch);

/* Closes the descriptor. NULL is allowed. */
void ll_death_watch_close(struct ll_death_watch *watch);

/*
 * job_group.c: the control group of a job, and the proof that a process belongs to the job.
 *
 * If the keeper serves, the first process of a new job is put into a group of the job before the job is accepted, and
 * all that it starts is in that group too. Root owns the group, so ssh, exec, `env -i` and a new environment do not
 * lead out of it. A process belongs to the job in whose group it is; only if it is in none, to the job whose token it
 * knows. Without a keeper, jobs are known by their tokens only.
 *
 * The number of a group is the inode of the job's page, which is the same for each daemon.
 */

/*
 * A job whose first process is that of a container (LL_JOB_CONTAINER) has the container's control group, which its
 * runtime made: no process is moved. It must be another one than that of the process that registers the job.
 * registrar_fd: that process; -1: a job of a former daemon. -EINVAL: the container has no control group of its own.
 * -EEXIST: another job has it, or has one above or below it. Does nothing for other jobs.
 */
int ll_job_group_of_container(struct ll_server *server, const struct ll_job_facts *facts, int process_fd,
			      int registrar_fd, char ret_group[LL_CGROUP_SIZE]);

/* The keeper is asked to place a new job. Returns false if there is none. Otherwise ll_job_group_on_placed is called
 * later, also if the keeper refuses. */
bool ll_job_group_place(struct ll_server *server, struct ll_job *job);

/* The keeper is asked to give the job's control group its limit of memory, where the kernel has such limits. Nothing
 * happens for a job without a group. */
void ll_job_group_limit(struct ll_server *server, const struct ll_job *job);

/* Of calls.c: the job is accepted on the connection of its monitor. */
void ll_job_group_on_placed(struct ll_connection *connection, const struct ll_job *job);

/* The keeper has told where groups are: finds which jobs have one. */
void ll_job_groups_look(const struct ll_server *server);

/* Requests the removal of the group of a job that has ended. Returns false if there is no keeper. It is also asked
 * about a job of a former daemon, of which it is not known whether it has a group. Otherwise ll_job_on_group_removed is
 * called later. */
bool ll_job_group_remove(struct ll_server *server, const struct ll_job *job);

/* Requests that all processes in the job's group get a signal that the keeper may send (LL_KEEPER_SIGNAL_GROUP).
 * It is also asked about a job of which it is not known whether it has a group. Returns false if there is no keeper, or
 * it has failed to send one before, which is logged. */
bool ll_job_group_signal(struct ll_server *server, const struct ll_job *job, int number);

/* Returns the job in whose group the process is; NULL: it is in none, or it is not known where groups are. */
struct ll_job *ll_job_group_find(struct ll_server *server, int process_fd);

/*
 * Finds the job of the process of the connection. id: the token that it knows; 0: none. -EAGAIN: the job is not known
 * (yet). -EPERM: the job is another user's. A process whose user changed inside the job needs both, the group and the
 * token.
 */
int ll_job_group_prove(const struct ll_connection *connection, uint64_t id, struct ll_job **ret_job);

/*
 * exports.c: allocations that processes share with others (protocol/message.h, SHARE). loadlined keeps descriptors of
 * them, and gives copies to processes that have the key.
 */

struct ll_shares {
	struct ll_share *first;
};

/* Handles SHARE. Takes the descriptors and sets them to -1. It does not take them if there is no memory, or if they do
 * not match the earlier messages. */
void ll_shares_add(struct ll_shares *shares, const struct ll_connection *connection,
		   const struct ll_message_share *message, int *fds, size_t count);

/* Calls count for each shared allocation, with the uid of its connection and the number of its descriptors. */
void ll_shares_count(const struct ll_shares *shares, void (*count)(void *data, uint32_t uid, uint64_t fds), void *data);

/* Handles UNSHARE. */
void ll_shares_remove(struct ll_shares *shares, const struct ll_connection *connection,
		      const struct ll_message_share *message);

/* The connection has ended: closes all that it shared. */
void ll_shares_end(struct ll_shares *shares, const struct ll_connection *connection);

/* Handles OPEN, and replies. */
void ll_shares_open(const struct ll_shares *shares, struct ll_connection *connection,
		    const struct ll_message_share *message);

void ll_shares_fini(struct ll_shares *shares);

/*
 * job_upkeep.c: jobs that ran under their users' own loadlined when the system's began to serve.
 *
 * Such a job has no place in the queue and was never checked against the configuration. It goes on with the limits that
 * it has, and the queue counts it as running. So that nobody goes round the queue in this way, it must register within
 * a minute after the socket of the service was made, and its first process must be older than the socket. If loadlined
 * starts anew, systemd keeps the socket.
 */

/* Whether the job is taken over. page_fds: the pages that its monitor brings; NULL: none. facts->pid: its first process
 * as this process sees it; 0: it does not. */
bool ll_takeover_is_due(const struct ll_server *server, const struct ll_job_facts *facts, const int *page_fds);

/* The jobs of which the log has a line. */
enum { LL_TAKEOVER_TOLD = 64 };
struct ll_takeover_told {
	uint64_t tokens[LL_TAKEOVER_TOLD];
	size_t count;
};

/* Logs that the job, which runs already, is taken over, or that it is refused and goes on ungoverned. Once for a job;
 * nothing more when LL_TAKEOVER_TOLD jobs have been logged. */
void ll_takeover_log(struct ll_takeover_told *told, const struct ll_job_facts *facts, bool is_taken);

/* ---- job_upkeep.c ---- */

/*
 * A monitor registers its job. On success, the job owns process_fd and lifeline_fd; monitor_fd is copied. The job
 * may be known already, if it has lost its monitor or its connection. -EBUSY: another process is its monitor. -EPERM:
 * it is another user's job. -EBADMSG: the pages are not this job's.
 */
struct ll_job_call {
	struct ll_connection *connection;
	const struct ll_job_facts *facts;
	const char *department_tenant;    /* of_jobs.c */
	const char *project, *name, *pod; /* empty: none */
	uint64_t said;                    /* as in struct ll_message_job */
	int monitor_fd, process_fd, lifeline_fd;
	const char *container; /* its control group (ll_job_group_of_container) */
	const int *page_fds;   /* page and orders of a former daemon, copied; NULL: there are none */
};
int ll_job_register(struct ll_server *server, const struct ll_job_call *call, struct ll_job **ret_job);

/* Before that: an unknown job that brings its pages has the limits that these have, since they may have been set after
 * its first registration. Writes them into the facts. -EBADMSG: the pages are not the job's user's. */
int ll_job_read_brought(const struct ll_server *server, const struct ll_job_call *call, struct ll_job_facts *facts);

/* Registers a job of a former daemon (system.c), without a monitor. On success the job owns process_fd and lifeline_fd.
 * Errors as above. */
int ll_job_restore(struct ll_server *server, const struct ll_job_call *call);

/* Fills in the message with which the job's monitor registers it. */
void ll_job_describe(const struct ll_job *job, union ll_message *ret_message);

/* The connection of the job's monitor has ended. */
void ll_job_disconnect(struct ll_server *server, struct ll_job *job);

/* The monitor has reported the job's end: the processes that it knows have ended. A job with a control group ends when
 * its group is empty. */
void ll_job_end(struct ll_server *server, struct ll_job *job);

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
