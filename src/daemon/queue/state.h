/*
 * state.h - the state of the queue (queue.h), private to the room.
 */
#ifndef LOADLINE_DAEMON_QUEUE_STATE_H
#define LOADLINE_DAEMON_QUEUE_STATE_H

#include <uv.h>

#include "base/clock.h"
#include "config/config.h"
#include "daemon/jobs/jobs.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/queue.h"
#include "rules/queue/lend.h"
#include "rules/queue/queue.h"

/*
 * after.c: the jobs of the queue that have ended, and how: for `--after-ok`. Plain data, without clock.
 *
 * The last 1000 are kept. If there is no room, the oldest job of the user with the most jobs goes, so that a user with
 * many short jobs does not push out the jobs of others.
 */

enum { LL_ENDED_MAX = 1000 };

struct ll_ended_job {
	uint64_t number, job_number; /* in the queue, and in the books; 0: none */
	uint64_t token;              /* token[0] */
	uint64_t ended_s;            /* since 1970 */
	uint64_t ended_ns;           /* ll_now_ns; 0: a former loadlined saw it */
	uint32_t uid, status;        /* status: as waitpid() gives it */
	bool has_status, has_run;
	bool is_killed;    /* it got SIGKILL at the end of its time: what is left of it gets no card any more */
	bool tells_status; /* somebody will tell the status, if that is not killed before */
};

struct ll_ended {
	size_t count;
	struct ll_ended_job jobs[LL_ENDED_MAX]; /* in the order of their ends */
};

void ll_ended_add(struct ll_ended *ended, const struct ll_ended_job *job);

/* number: in the queue or in the books. NULL: unknown. */
const struct ll_ended_job *ll_ended_find(const struct ll_ended *ended, uint64_t number);

/* Whether a job with this token is there that got SIGKILL at the end of its time. */
bool ll_ended_was_killed(const struct ll_ended *ended, uint64_t token);

/* Returns the job; NULL: the user has no such job there. */
const struct ll_ended_job *ll_ended_set_status(struct ll_ended *ended, uint64_t token, uint32_t uid, uint32_t status);

enum ll_ended_verdict {
	LL_ENDED_OK,      /* status 0 */
	LL_ENDED_FAILED,  /* another status, or it did not run */
	LL_ENDED_UNKNOWN, /* nobody tells the status */
	LL_ENDED_PENDING, /* the status may come yet: within 3 s of the end */
};

/* Whether a job that waits for the good end of this one may start. job NULL: LL_ENDED_UNKNOWN. */
enum ll_ended_verdict ll_ended_judge(const struct ll_ended_job *job, uint64_t now_ns);

/* Writes why it may not: "job 12 ended with status 3". */
void ll_ended_explain(const struct ll_ended_job *job, uint64_t number, char *ret_text, size_t size);

/* The planned time of a job of which nobody says how long it runs. It is not ended then. */
#define LL_ADMISSION_GUESS_NS (24 * 3600 * LL_NS_PER_S)

/* What a job borrows (lend.c), or waits for. queued.is_lent says whether it borrows. */
struct ll_loan {
	enum ll_lend_state state;
	enum ll_lend_step step; /* by which it leaves */
	uint32_t own_class;     /* enum ll_limit_class; while it borrows, limits.priority is low */
	uint32_t recalls;       /* since it last had room of its own */
	uint32_t all_recalls;
	unsigned tries;    /* failed ones to make it sleep */
	uint64_t since_ns; /* when it borrowed, was recalled, fell asleep or came back */
	uint64_t slept_ns; /* before this sleep */
	uint64_t owner;    /* the number of the job for which it was recalled; 0: none */
	bool is_pooled;    /* its memory has room in the host memory for eviction */
	bool is_blamed;    /* told: it cannot sleep, or has slept too long */
	uint64_t told_ns;  /* when `observe` told that a loan would start it; 0: it did not */
	bool is_requeued;  /* it is stopped, and goes back into the queue when it has ended */
	bool has_recalled; /* others were recalled for it */
};

/* A user whose starts failed although borrowers were recalled for them. */
struct ll_lend_ban {
	uint32_t uid;
	unsigned failures; /* in a row */
	uint64_t until_ns; /* no borrower is recalled for it before */
};

/* A job that waits, or that has a place. Times are ll_now_ns unless their name says seconds (since 1970). */
struct ll_admission_entry {
	struct ll_admission_entry *next;
	struct ll_queue_job queued;
	uint64_t token; /* of the job */
	uint32_t uid;
	struct ll_limits limits;
	bool has_memory, has_compute, has_count; /* the user named them; has_count: of cards */
	uint64_t came_s, wait_until_ns, register_until_ns;
	uint64_t begin_ns;       /* since when it has its place */
	uint64_t after;          /* waits for the end of that job; 0: none */
	bool pause_is_operators; /* of is_paused: its user does not end it */
	bool is_paused, has_end, has_named_cards, takes_no_wait;
	uint64_t card_mask; /* what the user named: a bit for each index */
	int slice;
	char tenant[LL_NAME_SIZE], command[LL_COMMAND_SIZE], name[LL_NAME_SIZE];
	char uuids[LL_QUEUE_CARDS_OF_JOB][LL_CARD_UUID_SIZE]; /* of its place */
	uint32_t uuid_count;
	uint64_t job_number;              /* in the books; 0: it has not registered */
	struct ll_connection *connection; /* that waits for the place; NULL: nobody */
	uint32_t serial;
	struct ll_message_queued told; /* the last one that was sent */
	uint64_t told_ns;
	bool is_warned;
	struct ll_job_stop stop;
	uint16_t signal, signal_before_s; /* it wishes that signal, so long before its end; 0: none */
	bool is_signaled;                 /* it got that */
	bool must_be_ok;                  /* the job `after` must end with status 0 */
	bool tells_status;                /* a command will tell its status, not only its monitor */
	bool can_restart;                 /* that command would start it again */
	bool has_status;
	bool has_run;              /* it has registered */
	uint32_t status;           /* as waitpid() gives it */
	bool is_ended;             /* by an operator: its user gives it no more time */
	bool is_canceled, is_past; /* is_past: its end is in the history */
	uint32_t canceled_by;
	uint64_t asked_time_ns;        /* 0: it did not say, and the configuration does not */
	char left_why[LL_REASON_SIZE]; /* why it left the queue without a place */
	bool has_project;
	struct ll_loan loan;
};

/* So long a job that runs has to register with the next loadlined. */
#define LL_ADMISSION_RETURN_NS (15 * LL_NS_PER_S)

/* Whether the entry waits for its place. */
static inline bool ll_admission_is_waiting(const struct ll_admission_entry *entry)
{
	return !entry->uuid_count;
}

/* Whether the entry has a place in which borrowers still are. */
static inline bool ll_admission_is_reserved(const struct ll_admission_entry *entry)
{
	return entry->loan.state == LL_LEND_RESERVED && !entry->has_run;
}

static inline struct ll_admission_entry *ll_admission_entry_of(const struct ll_queue_job *job)
{
	return (struct ll_admission_entry *)((char *)(uintptr_t)job - offsetof(struct ll_admission_entry, queued));
}

struct ll_admission_card {
	unsigned index;
	int slice; /* -1: the whole card */
	char uuid[LL_CARD_UUID_SIZE];
};

struct ll_admission_drain {
	unsigned index;
	uint64_t since_s;
	char reason[LL_NAME_SIZE]; /* empty: an operator drained it */
};

/* The use of a user, in a tenant. */
struct ll_admission_use {
	char tenant[LL_NAME_SIZE];
	uint32_t uid;
	double use_ns;
};

/* A user, with its subordinate uids, who has had places without a job. */
struct ll_admission_unused {
	uint32_t owner;
	uint64_t until_ns; /* none of its jobs starts before */
};

struct ll_admission_keeping;

/* The machine as rules/queue reads it. */
struct ll_admission_machine {
	struct ll_queue_machine machine;
	struct ll_queue_card queue_cards[LL_QUEUE_CARDS_MAX];
	struct ll_admission_card cards[LL_QUEUE_CARDS_MAX];
	struct ll_queue_group *groups;
	struct ll_queue_tenant *tenants; /* those of the policy, and one more for jobs whose tenant is gone */
	char (*names)[LL_NAME_SIZE];     /* of the tenants */
	struct ll_queue_amount *amounts; /* guarantees and limits */
	uint64_t *keep_free_bytes;       /* of each tenant */
	struct ll_queue_interval *intervals;
	size_t interval_room;
	uint64_t wall_ahead_ns; /* seconds since 1970 minus the clock of the plan, for the intervals */
};

struct ll_admission {
	struct ll_server *server; /* for what the queue asks of other rooms */
	bool is_system;
	struct ll_books *books;
	const struct ll_department *department;
	struct ll_subordinates *subordinates;
	uv_timer_t timer;
	bool has_queue;
	struct ll_queue queue;
	struct ll_admission_machine described;
	uint64_t policy_number, machine_changes, described_ns;
	bool is_outdated;                   /* the description */
	bool must_arrange;                  /* the order */
	uint64_t next_look_ns;              /* not before that */
	struct ll_admission_entry *entries; /* in the order of their numbers */
	struct ll_admission_drain *drains;
	size_t drain_count;
	struct ll_ended ended;
	struct ll_admission_unused *unused;
	size_t unused_count;
	/* of a former loadlined: its waiting jobs that have not asked again, and the use until former_use_ns, if it is
	 * of another boot former_use_age_s before that. The jobs that were stopped and come again are here too: they
	 * have until register_until_ns, and nobody waits for them */
	struct ll_admission_entry *former;
	struct ll_admission_use *former_use;
	size_t former_use_count;
	uint64_t former_use_ns, former_use_age_s;
	uint64_t first_look_ns;               /* since there can be a queue; 0: it cannot yet */
	struct ll_admission_keeping *keeping; /* NULL: the state is not stored */
	bool must_save;
	struct ll_takeover_told told;
	struct ll_lend_job *lend_jobs; /* lend.c: room for the running jobs */
	struct ll_lend_ban *bans;
	size_t ban_count;
};

/* ---- machine.c ---- */

/* Whether there can be a queue. */
bool ll_admission_is_possible(const struct ll_admission *admission);

/* Describes the machine anew if the configuration, the cards or a window has changed, and makes the queue of it.
 * -ENOMEM: there may be none. */
int ll_admission_describe(struct ll_admission *admission);
void ll_admission_undescribe(struct ll_admission *admission);

/* Fills in the tenant, the cards that the job may have, how many, and what it takes of each. The description must be
 * there. */
void ll_admission_place_wish(const struct ll_admission *admission, struct ll_admission_entry *entry);

/* The bits of the cards with these UUIDs. */
uint64_t ll_admission_mask(const struct ll_admission_machine *described, const struct ll_admission_entry *entry);

/* The bits of indices of cards. */
uint64_t ll_admission_indices(const struct ll_admission_machine *described, uint64_t cards);

/* ---- admission.c ---- */

struct ll_admission_entry *ll_admission_find(const struct ll_admission *admission, uint64_t number);

/* Ends the wait of the entry with REFUSED, and removes it. */
void ll_admission_refuse(struct ll_admission *admission, struct ll_admission_entry *entry, int code,
			 const char *reason);

/* A job gets the cards that are planned for it: they are no one else's from now on. */
void ll_admission_admit(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns);

/* The job may start there now: sends ADMITTED. */
void ll_admission_tell_place(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns);

/* ---- lend.c ---- */

#define LL_LENDING_STOP_WHY "its room was lent, and its owner needs it"

bool ll_lending_is_on(const struct ll_admission *admission);

/* Goes on with all that borrow, sleep, or wait for borrowers to leave. Before the plan. */
void ll_lending_settle(struct ll_admission *admission, uint64_t now_ns);

/* A due job claims its cards; which these are may change. Returns whether it gets them: then, if
 * ll_admission_is_reserved, it starts when borrowers have left. Else nobody was touched. */
bool ll_lending_claim(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t now_ns);

/* Wakes sleepers that have room, then lends to waiting jobs, in the order of the queue. After the starts. */
void ll_lending_lend(struct ll_admission *admission, uint64_t now_ns);

/* The class that the job asked for. */
uint32_t ll_lending_class(const struct ll_admission_entry *entry);

/* The job has started, or ends. */
void ll_lending_note_start(struct ll_admission *admission, const struct ll_admission_entry *entry);
void ll_lending_note_end(struct ll_admission *admission, const struct ll_admission_entry *entry);

/* ---- request.c ---- */

/* Fills in what the request asks for. The description must be there, and entry->uid. -EACCES: the configuration does
 * not allow it, or the job would never start; err says what was asked for and what is allowed. */
int ll_admission_read_request(struct ll_admission *admission, const struct ll_message_admit *admit,
			      struct ll_admission_entry *entry, struct ll_err *err);

/* What must be so when a job asks, and when it starts: its user is in its tenant, which may use its class and has a
 * budget left. -EACCES. */
int ll_admission_check_now(const struct ll_admission *admission, const struct ll_admission_entry *entry,
			   struct ll_err *err);

/* Fills in what the job takes of a card in the queue: by its limits. A job without a limit of memory may use all of a
 * shared card, and so takes it. */
void ll_admission_size(const struct ll_admission_machine *described, struct ll_admission_entry *entry);

/* Whether a user of the tenant may have a job of this length. tenant NULL: the configuration has it no more. */
bool ll_admission_allows_time(const struct ll_config_tenant *tenant, uint64_t time_ns);

/* Whether the job, if it runs, may last so long from its begin: ll_queue_may_change. */
bool ll_admission_may_last(struct ll_admission *admission, const struct ll_admission_entry *entry, uint64_t time_ns);

/* The entry goes. If it has had a place that no job took, that costs its user. */
void ll_admission_note_unused(struct ll_admission *admission, const struct ll_admission_entry *entry);

/* Whether no job of the user starts now, because of such places. */
bool ll_admission_owes(const struct ll_admission *admission, const struct ll_admission_entry *entry);

/* Whether the job, if it is of class high, is within the tenant's guarantee in a group where it may be, together with
 * the tenant's other jobs of that class. -EACCES. */
int ll_admission_check_high_now(const struct ll_admission *admission, const struct ll_admission_entry *entry,
				struct ll_err *err);

/* ---- after.c ---- */

/* Checks the job for whose end this one shall wait: it must be known, and with --after-ok of the same user. -EACCES. */
int ll_admission_check_after(const struct ll_admission *admission, const struct ll_admission_entry *entry,
			     struct ll_err *err);

/* Whether the entry need not wait for another job's end any more. Returns false if the other job did not end as it
 * must; ret_reason then says so. */
bool ll_admission_look_after(const struct ll_admission *admission, struct ll_admission_entry *entry,
			     char ret_reason[LL_REASON_SIZE]);

/* Notes the end of a job that ran, or that was in the queue. */
void ll_admission_note_end(struct ll_admission *admission, struct ll_admission_entry *entry);

/* ---- keep.c ---- */

/* The job asks for its place. If it asked a former loadlined before, or comes again after it was stopped (again: its
 * number), it gets the number, the position and the pause that it had. */
void ll_admission_former_return(struct ll_admission *admission, struct ll_admission_entry *entry, uint64_t again);

/* A job that was stopped has ended (loan.is_requeued), and comes again: its number is kept for it. Takes the entry,
 * which is in no list. */
void ll_admission_former_keep(struct ll_admission *admission, struct ll_admission_entry *entry);

/* The job with this number that may ask again yet; NULL: none. */
const struct ll_admission_entry *ll_admission_former_find(const struct ll_admission *admission, uint64_t number);

/* Whether no job shall start yet, because waiting jobs of the former loadlined have not asked again. */
bool ll_admission_former_holds(struct ll_admission *admission, uint64_t now_ns);

/* Adds the use that the former loadlined counted to the first queue. */
void ll_admission_former_count(struct ll_admission *admission, uint64_t half_life_ns);

void ll_admission_former_fini(struct ll_admission *admission);

/* A job gets this number: no later loadlined shall give it again, however this one ends. Once in 64 numbers it writes a
 * file, which takes some ms. */
void ll_admission_keep_number(struct ll_admission *admission, uint64_t number);

/* Writes the state by a thread, if it has changed (must_save), or use is due. */
void ll_admission_save(struct ll_admission *admission);

void ll_admission_keep_fini(struct ll_admission *admission);

/* ---- pack.c ---- */

/* Returns the state as a text, which the caller frees: jobs, drained cards, use, how jobs ended, the last number. NULL:
 * no memory. */
char *ll_admission_pack(const struct ll_admission *admission);

/* Fills in a state without jobs. Jobs of another boot have ended. -EBADMSG: the text is not of this version. */
int ll_admission_unpack(struct ll_admission *admission, const char *text);

/* ---- listing.c ---- */

/* What the entry waits for, as the user may know it. */
struct ll_queue_waits ll_admission_waits(const struct ll_admission *admission, const struct ll_admission_entry *entry,
					 bool sees_others);

/* By which rule the waiting entry does not start now, as the user may know it. */
struct ll_queue_why_told ll_admission_why(const struct ll_admission *admission, const struct ll_admission_entry *entry,
					  bool sees_others);

/* A moment of the plan in seconds since 1970; 0: never. */
uint64_t ll_admission_second(uint64_t at_ns);

/* ---- act.c ---- */

void ll_admission_act(struct ll_connection *connection, const struct ll_message_queue_act *act);

#endif
