/*
 * policy.h - the configuration of the machine (config/config.h) as the system's loadlined has it in force, and who
 * is who in it.
 *
 * It is read when loadlined starts, and again at SIGHUP. A file with faults does not come into force: at the start
 * loadlined refuses to serve, later the old configuration stays. What a configuration points to lives until the next
 * one comes into force, so nobody keeps a pointer into it beyond one turn of the loop.
 */
#ifndef LOADLINE_DAEMON_POLICY_POLICY_H
#define LOADLINE_DAEMON_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <uv.h>

#include "accounts/spent.h"
#include "config/config.h"
#include "protocol/limits.h"
#include "protocol/message.h"

struct ll_connection;
struct ll_err;
struct ll_identity_lookup;
struct ll_job;
struct ll_server;

/*
 * identity.c, first: the names of users and of their groups, as this machine's databases (NSS) have them.
 *
 * A directory such as LDAP can hang. So loadlined asks no database itself: it starts `loadlined --lookup UID`
 * (ll_identity_print), and kills that process if it has not answered in wait_ms. An answer counts for keep_ms. After a
 * lookup that failed the last answer goes on counting, and the next lookup is retry_ms later. A new job waits for the
 * answer; commands wait for slow_ms alone, and monitors of jobs, which may have been admitted before, for late_ms.
 */

#define LL_IDENTITY_SLOW_MS 500
#define LL_IDENTITY_LATE_MS 2000
#define LL_IDENTITY_WAIT_MS 30000
#define LL_IDENTITY_KEEP_MS 60000
#define LL_IDENTITY_RETRY_MS 10000

struct ll_identity {
	struct ll_identity *next;
	uint32_t uid;
	bool is_known; /* there is an answer */
	char *texts;   /* of the answer: the name and the groups, each with its NUL */
	size_t length;
	bool is_asked;         /* a lookup runs */
	bool is_slow, is_late; /* it has run for slow_ms, for late_ms */
	bool has_ended;
	uint64_t due_ms; /* on the loop's clock: when the next lookup is due */
	int code;        /* of the last lookup: 0, or a negative errno; -ETIMEDOUT: it did not answer */
};

/* How to look up. The words of the process are `program`, --lookup and the number. */
struct ll_identity_source {
	const char *program; /* NULL: this program */
	uint64_t slow_ms,
	    late_ms; /* each more than the one before: who cannot wait longer goes on without the answer */
	uint64_t wait_ms, keep_ms, retry_ms;
};

/* What on_ready is told of a lookup. */
enum ll_identity_news {
	LL_IDENTITY_IS_SLOW,   /* it has run for slow_ms */
	LL_IDENTITY_IS_LATE,   /* for late_ms */
	LL_IDENTITY_HAS_ENDED, /* with or without an answer */
};

typedef void (*ll_identity_ready_fn)(void *data, uint32_t uid, enum ll_identity_news news);

struct ll_identities {
	uv_loop_t *loop;
	struct ll_identity_source source;
	ll_identity_ready_fn on_ready;
	void *data;
	struct ll_identity *first;
	struct ll_identity_lookup *lookups;
};

/* source NULL: this program, with the times above. */
void ll_identities_init(struct ll_identities *identities, uv_loop_t *loop, const struct ll_identity_source *source,
			ll_identity_ready_fn on_ready, void *data);

/* Kills lookups that run. The caller lets the loop run until it is empty. */
void ll_identities_fini(struct ll_identities *identities);

/* Starts a lookup if one is due. Returns whether on_ready will be called for this user with these news, or with the
 * end: until then the answer is missing or old. */
bool ll_identities_ask(struct ll_identities *identities, uint32_t uid, enum ll_identity_news news);

/* Returns what is known of the user. NULL: nothing; err says why: -EAGAIN, a lookup runs, or none was started;
 * otherwise the lookup failed. The result lives until the next lookup of the user ends. */
const struct ll_identity *ll_identities_find(const struct ll_identities *identities, uint32_t uid, struct ll_err *err);

/* The user's name; the number in decimal if no database has one. */
const char *ll_identity_name(const struct ll_identity *identity);

bool ll_identity_has_group(const struct ll_identity *identity, const char *group);

/* The process of a lookup: prints the name of the user and the names of all groups of the user, each with a NUL. May
 * block. Returns the exit status. */
int ll_identity_print(const char *uid);

/*
 * identity.c, then: which user a subordinate uid belongs to.
 *
 * A user may have many uids: /etc/subuid gives each user 65536 of them, for user namespaces. What each user may have at
 * most of the daemon's descriptors (rights.c) counts for a user and the subordinate uids together.
 *
 * The file is read again when it has changed, at most each 10 s. Lines name the user or its uid; names are looked up in
 * /etc/passwd alone. The ranges of a name that is not there belong together, and not to the user. Ranges that a
 * directory (nsswitch.conf: subid) gives are not known.
 */

struct ll_subordinate_range {
	uint64_t first, end; /* end: the first one after it */
	uint32_t owner;
};

struct ll_subordinates {
	struct ll_subordinate_range *ranges; /* by `first` */
	size_t count, room;
	uint64_t checked_ns; /* 0: never */
	struct timespec changed;
};

/* Returns the uid of the user to whom the uid belongs; of an ordinary uid itself. Reads /etc/subuid if that is due. */
uint32_t ll_subordinates_owner(struct ll_subordinates *subordinates, uint32_t uid);

void ll_subordinates_fini(struct ll_subordinates *subordinates);

/* ---- for tests ---- */

/* Adds the ranges of a file like /etc/subuid. users: like /etc/passwd; NULL: none. Bad lines are left out. */
void ll_subordinates_add(struct ll_subordinates *subordinates, FILE *file, FILE *users);

/* As ll_subordinates_owner, and reads nothing. */
uint32_t ll_subordinates_find(const struct ll_subordinates *subordinates, uint32_t uid);

/* ---- policy.c ---- */

enum { LL_DEPARTMENT_FAULT_SIZE = 200 };

struct ll_department {
	struct ll_config config; /* root NULL: none is in force */
	struct ll_identities identities;
	uint32_t admin;    /* a uid that is an admin besides; 0, root: none is */
	int64_t since_s;   /* seconds since 1970: when it came into force */
	uint64_t number;   /* rises with each configuration that comes into force */
	int64_t refused_s; /* since when the file on the disk is not the one in force; 0: it is */
	/* Finds the number of a card by its UUID (machine.h). Returns false if it is not known. NULL: none is known */
	bool (*find_card)(const struct ll_server *server, const char *uuid, struct ll_config_card *ret_card);
	char fault[LL_DEPARTMENT_FAULT_SIZE]; /* the first fault of that file: FILE:LINE:COLUMN: TEXT */
};

/*
 * Reads and checks the configuration, and takes it over if it has no faults. path NULL: LL_CONFIG_FILE if it exists,
 * else no configuration is in force. now_s: seconds since 1970. Faults and warnings are logged, each with its place.
 * -EINVAL: it has faults, or cannot be read; then the former one stays in force, and err has the first fault.
 */
int ll_department_load(struct ll_department *department, const char *path, int64_t now_s, struct ll_err *err);

/* The two steps of it. A thread may call ll_department_read. config: zeroed; ll_department_put takes it over, with what
 * ll_department_read returned. */
int ll_department_read(struct ll_config *config, const char *path, int64_t now_s, struct ll_err *err);
int ll_department_put(struct ll_department *department, struct ll_config *config, int rc, const struct ll_err *why,
		      int64_t now_s);

/* Frees the configuration. The identities have their own init and fini. A zeroed department is fine. */
void ll_department_fini(struct ll_department *department);

/* Returns the policy in force; NULL: none is. */
const struct ll_config_policy *ll_department_policy(const struct ll_department *department);

/*
 * Returns the tenant of a user: the first that has the user, or, with a wanted name, the one of that name. wanted:
 * NULL or empty: none. NULL is returned with
 *   -ENOENT    no configuration is in force
 *   -EAGAIN    the user's groups are being looked up (identity.c)
 *   -EACCES    there is no tenant of that name, or the user is not in it; err says in which tenants the user is
 *   other      the lookup failed and there is no earlier answer
 */
const struct ll_config_tenant *ll_department_tenant(const struct ll_department *department, uint32_t uid,
						    const char *wanted, struct ll_err *err);

/* Returns the tenant of that name; NULL: there is none. */
const struct ll_config_tenant *ll_department_find(const struct ll_department *department, const char *name);

/* Whether the user is among these people. False if the user's groups are not known. */
bool ll_department_has(const struct ll_department *department, const struct ll_config_people *people, uint32_t uid);

/* Root is an admin, and department->admin. */
bool ll_department_is_admin(const struct ll_department *department, uint32_t uid);

/* An admin is an operator. */
bool ll_department_is_operator(const struct ll_department *department, uint32_t uid);

/*
 * allowance.c: what a job of a tenant may have by the configuration: defaults, classes, the limits of each user and of
 * the tenant, and the guarantee.
 *
 * The functions are arithmetic on the policy and on sums; of_jobs.c makes the sums of the books.
 */

/* What jobs have together. A job of N cards that are given by memory has N times its memory limit and its compute. */
struct ll_job_sum {
	uint64_t jobs;
	uint64_t memory_bytes, compute_permille; /* on cards that are given by memory, or whose group is unknown */
	uint64_t cards;                          /* whole cards */
	uint64_t request_bytes;                  /* of the memory: promised (--mem-request) */
};

/*
 * Fills the limits that the job did not say (`said`: enum ll_set_field, enum ll_said). memory, class and evictable come
 * from `defaults`. Without a default, memory and compute become what is left of the user's limit. A default class that
 * the tenant may not use becomes the first of normal, low and high that it may. user: of the user's other jobs in the
 * tenant.
 */
void ll_allowance_complete(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
			   const struct ll_job_sum *user, uint64_t said, struct ll_limits *limits);

/* Checks complete limits of a job: its class, and each-user's running, memory and compute. cards: how many cards given
 * by memory the job has, at least 1. -EACCES: err says what was asked for, what is allowed, and what is in use. */
int ll_allowance_check(const struct ll_config_tenant *tenant, const struct ll_job_sum *user, uint64_t cards,
		       const struct ll_limits *limits, struct ll_err *err);

/* What a job would have in one group of cards. */
struct ll_allowance_group {
	const struct ll_config_group *group;
	struct ll_job_sum user;   /* of the user's other jobs, in all groups */
	struct ll_job_sum tenant; /* of the tenant's other jobs in this group */
	struct ll_job_sum high;   /* of these: jobs of class high */
	struct ll_job_sum job;    /* of the job in this group, with the card that it is to get */
	bool is_high;
};

/* Checks that a job may have a card of the group: each-user's cards, the tenant's limit, and for class high the
 * guarantee; promised memory is within the guarantee too. -EACCES as above. */
int ll_allowance_check_group(const struct ll_config_tenant *tenant, const struct ll_allowance_group *ask,
			     struct ll_err *err);

/* Whether the tenant may use the class: enum ll_limit_class. -EACCES. */
int ll_allowance_check_class(const struct ll_config_tenant *tenant, uint32_t priority, struct ll_err *err);

/* Returns the part of that group; NULL: there is none. */
const struct ll_config_part *ll_allowance_part(const struct ll_config_parts *parts, const char *group);

/* The configuration's word for a class of limits. */
enum ll_config_class ll_allowance_class(uint32_t limit_class);

bool ll_allowance_has_class(const struct ll_config_tenant *tenant, enum ll_config_class class);

/*
 * of_jobs.c, first: the configuration (policy.h) applied to the jobs in the books.
 *
 * A job gets its tenant when it registers, and keeps it until it ends: its `department_tenant`. Jobs of a time without
 * a configuration have none, and no check concerns them. Without a configuration in force the checks allow everything.
 */

/*
 * A job registers: finds its tenant, by the name if the user named one, and completes and checks its limits. page_fds:
 * of a former daemon; NULL: none. A job that was admitted already, or is taken over (job_upkeep.c), keeps its limits.
 * ret_tenant: the tenant's name; empty if no configuration is in force. Errors: ll_department_tenant,
 * ll_allowance_check.
 */
int ll_department_admit(const struct ll_server *server, struct ll_message_job *message, const int *page_fds,
			char ret_tenant[LL_NAME_SIZE], struct ll_err *err);

/* A job that this daemon does not know may come with the pages of a former daemon, right after the start of this one:
 * it was admitted then. page_fds may be NULL. */
bool ll_department_was_admitted(const struct ll_server *server, const int *page_fds);

/* Whether the job may have this card besides those that it has. -EACCES. */
int ll_department_check_card(const struct ll_server *server, const struct ll_job *job, const char *uuid,
			     struct ll_err *err);

/* Whether the job may have these limits in place of its present ones. What becomes smaller is always allowed. -EACCES.
 */
int ll_department_check_limits(const struct ll_server *server, const struct ll_job *job, const struct ll_limits *limits,
			       struct ll_err *err);

/* Whose jobs a sum counts. */
struct ll_department_scope {
	const char *tenant;
	bool is_of_user;
	uint32_t uid;                        /* with is_of_user */
	const struct ll_job *except;         /* NULL: none */
	const struct ll_config_group *group; /* NULL: all cards */
	bool is_high;                        /* class high alone */
};

/* Sums what jobs have asked for. Jobs whose processes have ended do not count. */
void ll_department_sum(const struct ll_server *server, const struct ll_department_scope *scope,
		       struct ll_job_sum *ret_use);

/* Finds the number of a card as the sensor reported it, for struct ll_department. */
bool ll_department_find_card(const struct ll_server *server, const char *uuid, struct ll_config_card *ret_card);

/* Whether the sensor has reported cards, so that groups are known. */
bool ll_department_knows_cards(const struct ll_server *server);

/* Returns the group of a card; NULL: no configuration is in force, or the card's number is not known. */
const struct ll_config_group *ll_department_group(const struct ll_server *server, const char *uuid);

/* The job has just got the card. If the card is given whole, limits of memory and compute that the user did not say are
 * taken off the job. Returns whether the limits have changed. */
bool ll_department_fit_limits(const struct ll_server *server, struct ll_job *job, const char *uuid);

/* Another configuration is in force: logs which tenants and users have more than it allows. No job is changed. */
void ll_department_note_change(struct ll_server *server);

/*
 * promises.c: the limits of jobs that commands set, and the memory of a card that is promised to jobs (--mem-request).
 *
 * The sum of the requests of all jobs on a card may not exceed the promisable bytes that `run` reported, unless a
 * command allowed it (--overcommit).
 */

/* Lets the job use a card. -EDQUOT: the card cannot promise its request. -ENOSPC, -ENOMEM. ret_reason: a text for the
 * user. */
int ll_promises_bind(struct ll_server *server, struct ll_job *job, const struct ll_message_bind *bind,
		     char ret_reason[LL_REASON_SIZE]);

/* Puts the limits that the message sets in place of those in limits. */
void ll_promises_merge(struct ll_limits *limits, const struct ll_message_set *set);

/* The job has other limits (facts.limits): tells its processes, and decides about its memory again. */
void ll_promises_apply(struct ll_server *server, struct ll_job *job);

/* Changes limits. -EDQUOT: no limit is changed. */
int ll_promises_set(struct ll_server *server, struct ll_job *job, const struct ll_message_set *set,
		    char ret_reason[LL_REASON_SIZE]);

/* After a job has come with pages that its own user's loadlined may have made: if its request would take what another
 * user was promised, the job has none from now on. */
void ll_promises_check_brought(struct ll_server *server, struct ll_job *job);

/*
 * rights.c: what the other side of a connection may see and request, by its uid.
 *
 * A user's daemon serves its user. A process of another uid may only request a slot of a job whose token it knows
 * (connection.is_foreign). The system's daemon serves every uid. Each user may register jobs, and sees the rows of all
 * jobs. A user may change only the own jobs; root may change all. A configuration (policy.h) names admins, who may
 * what root may, and operators, and says what users see of others.
 */

/* Whether the user may have more descriptors of the system's daemon: those of a job, a connection, a reply that waits,
 * or shared memory. A user and its subordinate uids (identity.c) have together no more than a part of what is left
 * free (struct ll_fair_room). Root may have more. */
bool ll_rights_have_room(struct ll_server *server, uint32_t uid);

/* The same for a connection that comes in now. What was counted in this turn of the loop counts. */
bool ll_rights_have_room_at_door(struct ll_server *server, uint32_t uid);

/* Whether there is room for the job with this first token. Jobs that are known, and those of a former daemon, had room
 * before. page_fds: those that the job brings; NULL: none. */
bool ll_rights_have_room_for_job(const struct ll_connection *connection, uint64_t id, const int *page_fds);

/* Whether the other side may change the job. */
bool ll_rights_over(const struct ll_connection *connection, const struct ll_job *job);

/* Whether it may evict, suspend and resume the job: operators may too. */
bool ll_rights_to_move(const struct ll_connection *connection, const struct ll_job *job);

/* Logs that the other side does something to another user's job, by which right, and why. verb: "evicts". reason: what
 * the command said (--reason); empty: nothing. */
void ll_rights_note(const struct ll_connection *connection, const struct ll_job *job, const char *verb,
		    const char *reason);

/* Whether the other side sees anything of other users' jobs. */
bool ll_rights_see_others(const struct ll_connection *connection);

/* Whether it sees the sums of tenants and of the machine: everybody does where metrics or a page publish them. */
bool ll_rights_see_sums(const struct ll_connection *connection);

/* Whether it may know that there is a job of that user. To who may not, the job's number is that of no job. */
bool ll_rights_know(const struct ll_connection *connection, uint32_t uid);

/* Whether the other side may signal the process, and so name it as its own. True if /proc hides whose process it is. */
bool ll_rights_over_process(const struct ll_connection *connection, int process_fd);

/* Removes from a message what the other side must not know: the fields of another user's row that are private
 * (protocol/rows.def), as far as `visibility` of the configuration says, and others' part of WELCOME. The token of a
 * job is secret, because a process that knows it belongs to the job; the row gets the job's number in its place.
 * Returns false if the whole row is hidden: it is not sent, and LIST_END does not count it. */
bool ll_rights_trim(struct ll_connection *connection, union ll_message *row);

/*
 * rights.c, also queue/request.c and core/door.c: how much one user may have of what all users share.
 *
 * A user may have at most a quarter of what is left free for everybody. So one user alone gets a fifth of all, and the
 * next one a fifth of the rest. Whoever comes finds room, unless very many users have taken all that they can: n of
 * them leave 0.8^n of all. (It is the dynamic threshold of shared buffers in switches: Choudhury and Hahne, 1998.)
 */

enum { LL_FAIR_ROOM_PART = 4 };

struct ll_fair_room {
	uint64_t size;      /* of the whole */
	uint64_t all, user; /* what all users have, and of it this one */
};

/* Whether the user may have `more` too. */
static inline bool ll_fair_room_permits(const struct ll_fair_room *room, uint64_t more)
{
	uint64_t free = room->size > room->all ? room->size - room->all : 0;
	return room->user <= free / LL_FAIR_ROOM_PART && more <= free - LL_FAIR_ROOM_PART * room->user;
}

static inline void ll_fair_room_count(struct ll_fair_room *room, bool is_user, uint64_t amount)
{
	room->all += amount;
	room->user += is_user ? amount : 0;
}

/*
 * spending.c: budgets of tenants (`tenants: budget`), and which jobs the accounts refuse.
 *
 * What counts is the time that was granted (accounts/batch.h), not the time that was used. A job that holds a card and
 * does not use it keeps others away all the same, and a user can compute the granted time before: cards, times their
 * share, times hours. Slurm counts allocated time for the same reason.
 *
 * The sums of a period come from the database when loadlined starts, when a period begins, and when a configuration has
 * its first budget; from then on what is collected is added. While they are not known, no job is refused.
 */

/* Zeroed, nothing is known. */
struct ll_spending {
	struct ll_spent spent; /* is_known: of the present periods */
	bool is_known;
	struct ll_spent told; /* events: the part of the budget that was told, as seconds of the period (0.8 or 1) */
	/* of the thread */
	struct ll_spent reading;
	bool is_reading, has_read;
};

/* ---- of the accounting (accounts/write.c) ---- */

/* Whether there are budgets and the sums are not known. */
bool ll_spending_is_wanted(const struct ll_spending *spending, const struct ll_server *server);

/* Before the thread starts; in the thread, after the batch is in the database; and after it. */
void ll_spending_begin_read(struct ll_spending *spending, const struct ll_server *server);
int ll_spending_read(struct ll_spending *spending, struct ll_use_database *database, struct ll_err *err);
void ll_spending_end_read(struct ll_spending *spending, const struct ll_server *server);

/* Adds what a job was granted newly. */
void ll_spending_add(struct ll_spending *spending, const char *tenant, uint64_t granted_ns);

/* Tells of budgets that are spent by 80 % or wholly, once in each period. */
void ll_spending_tell(struct ll_spending *spending, const struct ll_server *server);

void ll_spending_fini(struct ll_spending *spending);

/* ---- of jobs and commands ---- */

/* Whether a new job of the tenant may start. -EACCES: the budget is spent; the job has no project although each must
 * have one (`accounts: projects: required`), or has one although none may. */
int ll_spending_check(const struct ll_server *server, const struct ll_config_tenant *tenant, bool has_project,
		      struct ll_err *err);

/* Makes the row of the tenant's budget. Returns false if it has none. */
bool ll_spending_describe(const struct ll_server *server, const struct ll_config_tenant *tenant,
			  union ll_message *ret_message);

/*
 * of_jobs.c, then: the weight of a configured tenant, shared among its jobs on a card.
 *
 * On a card a tenant's jobs together have the tenant's weight, however many they are: each has the part that its own
 * weight (`run --weight`) is of the sum of theirs. Jobs that have not wanted the card for 30 s leave their part to the
 * others. A job without a configured tenant has its own weight.
 */

/* Computes the weights of all jobs on all cards again: after a job has come to a card, has left it, or has other
 * limits, and once a second. Returns whether it must be called again in a second. */
bool ll_weights_settle(struct ll_server *server);

#endif
