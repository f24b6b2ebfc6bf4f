/*
 * queue.h - who starts when, on which cards: placement and the queue of a machine of several users.
 *
 * Each waiting job gets a planned start and planned cards. The plan is made in the order of the queue:
 *
 *   1. Strict order. Each job gets the earliest start that is not before the start of any job ahead of it. This is what
 *      a queue without backfill would do.
 *   2. Backfill. Then each job, in the same order, gets the earliest start that the starts of all others permit, those
 *      behind it too. So no job starts later than in strict order, as long as each job ends at its time and no job
 *      comes that goes ahead.
 *
 * The first LL_QUEUE_PLANNED_MAX jobs of the order that can start at all have a start, and of each user at most a
 * quarter of these. The others wait for them without one, and come into the plan as these begin.
 *
 * Cards are in groups. A group is given by card (a job has the whole card), or by memory (jobs share a card: each has
 * memory and compute of it). Of what a tenant has in a group, its guarantee comes first. A job may go beyond it only in
 * room that no guarantee covers: at each moment the sum over all tenants of max(guarantee, use) fits in the group.
 *
 * Pure arithmetic. Times are ns on one clock of the caller. LL_QUEUE_NONE is "never", or "no limit". The caller owns
 * the jobs and the description of the machine.
 *
 *     ll_queue_add(&queue, &job);
 *     ll_queue_arrange(&queue, &rules, now_ns);
 *     ll_queue_plan(&queue, now_ns);
 *     while ((job = ll_queue_due(&queue, now_ns)))
 *             ll_queue_start(&queue, job, now_ns);
 */
#ifndef LOADLINE_RULES_QUEUE_QUEUE_H
#define LOADLINE_RULES_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LL_QUEUE_CARDS_MAX = 64 };

/* So many waiting jobs, and of one user, have a planned start at a time: the time of a plan grows by more than the
 * square of their number. */
enum { LL_QUEUE_PLANNED_MAX = 256, LL_QUEUE_PLANNED_OF_USER = LL_QUEUE_PLANNED_MAX / 4 };

#define LL_QUEUE_NONE UINT64_MAX
#define LL_QUEUE_NOBODY UINT32_MAX
/* A job that is over its time and still runs is planned to end after this much more. */
#define LL_QUEUE_OVERRUN_NS UINT64_C(60000000000)

/* cards counts the cards of groups that are given by card; memory and compute those of groups by memory. */
struct ll_queue_amount {
	uint64_t cards, memory_bytes, compute_permille;
};

struct ll_queue_card {
	uint64_t memory_bytes;
	uint32_t group;
	int numa_node; /* -1: unknown */
};

struct ll_queue_group {
	bool is_whole; /* given by card */
};

struct ll_queue_user_limits {
	struct ll_queue_amount most; /* of all groups together */
	uint64_t running;
};

struct ll_queue_tenant {
	const struct ll_queue_amount *guarantees; /* one for each group; all 0: none */
	const struct ll_queue_amount *limits;     /* one for each group; LL_QUEUE_NONE: no limit */
	uint64_t weight;                          /* at least 1 */
	struct ll_queue_user_limits each_user;
};

/* A card is out of use from begin to end (maintenance, drained), or for one tenant alone (a reservation). */
struct ll_queue_interval {
	uint32_t card;
	uint32_t tenant; /* LL_QUEUE_NOBODY: out of use */
	uint64_t begin_ns, end_ns;
};

struct ll_queue_machine {
	size_t card_count, group_count, tenant_count, interval_count;
	const struct ll_queue_card *cards; /* at most LL_QUEUE_CARDS_MAX */
	const struct ll_queue_group *groups;
	const struct ll_queue_tenant *tenants;
	const struct ll_queue_interval *intervals;
};

struct ll_queue_slot {
	uint64_t begin_ns; /* LL_QUEUE_NONE: there is none */
	uint64_t cards;    /* a bit for each */
};

struct ll_queue_job {
	/* set by the caller before ll_queue_add */
	uint64_t number; /* rises with the arrivals */
	uint32_t tenant, uid;
	uint32_t card_count;
	uint64_t memory_bytes, compute_permille; /* on each card, of a group by memory */
	uint64_t duration_ns;                    /* at least 1 */
	uint64_t allowed; /* a bit for each card that it may have. All its cards will be of one group */
	uint64_t within;  /* those of `allowed` that it may have only within its tenant's guarantee */
	bool has_time;    /* the user named duration_ns */
	/* set by the caller at any time, with ll_queue_changed */
	bool is_held;      /* it is not planned: paused, or it waits for another job's end */
	uint32_t position; /* that an operator gave it, from 1; 0: none */
	/* set by the queue; of a job that runs already, by the caller */
	uint64_t overtook; /* the highest number of the jobs that it was let forward of; 0: none */
	/* set by the queue */
	bool is_running;
	/* of a running job, set by the caller with ll_queue_changed (lend.h). is_lent: the plan sees it in the limits
	 * of its user alone. is_asleep: its memory is off its cards, so it uses nothing */
	bool is_lent, is_asleep;
	struct ll_queue_slot strict, planned; /* of a running job, planned is where it runs */
	uint32_t user;                        /* index */
};

/* The use of a tenant or user, for fairshare: ns of a whole card, which halve with each half-life. */
struct ll_queue_user {
	uint32_t tenant, uid;
	double use_ns;
	size_t planned; /* waiting jobs with a start; set by each plan */
};

enum ll_queue_key { LL_QUEUE_BY_RESERVATION, LL_QUEUE_BY_GUARANTEE, LL_QUEUE_BY_FAIRSHARE, LL_QUEUE_BY_AGE };

struct ll_queue_rules {
	size_t key_count;
	enum ll_queue_key keys[4]; /* the first that differs decides */
};

struct ll_queue_profile;

struct ll_queue {
	const struct ll_queue_machine *machine;
	struct ll_queue_job **jobs; /* the running ones, then the waiting ones in their order */
	size_t count, running_count, room;
	struct ll_queue_user *users;
	size_t user_count;
	double *tenant_use_ns;
	uint64_t charged_ns; /* until when use is counted */
	bool has_backfill;
	size_t planned_most, planned_of_user; /* LL_QUEUE_PLANNED_...; a caller who has time sets more */
	bool is_stale;                        /* the plan must be made anew */
	bool has_gaps;                        /* the plan holds, and jobs may move forward in it */
	size_t planned_beside; /* how many got a start, where others were left out for them; 0: none was */
	struct ll_queue_profile *profile;
};

/* -ENOMEM. The machine must outlive the queue, or be replaced. */
int ll_queue_init(struct ll_queue *queue, const struct ll_queue_machine *machine);
void ll_queue_fini(struct ll_queue *queue);

/* Another description of the machine. The tenants must be the same as before, in the same order, or no job be there.
 * The next plan is made anew. -ENOMEM. */
int ll_queue_set_machine(struct ll_queue *queue, const struct ll_queue_machine *machine);

/* Adds a waiting job at the end of the order. -ENOMEM. */
int ll_queue_add(struct ll_queue *queue, struct ll_queue_job *job);

/* Adds a job that runs already, since begin_ns, on these cards. -ENOMEM. */
int ll_queue_add_running(struct ll_queue *queue, struct ll_queue_job *job, uint64_t begin_ns, uint64_t cards);

/* The job has ended, or does not wait any more. If it ended before its time, others may move forward. */
void ll_queue_remove(struct ll_queue *queue, struct ll_queue_job *job, uint64_t now_ns);

/* Adds use of a user, but not of its tenant. -ENOMEM. */
int ll_queue_add_use(struct ll_queue *queue, uint32_t tenant, uint32_t uid, double use_ns);

/* The caller has changed is_held, position, duration_ns or allowed of a job. */
void ll_queue_changed(struct ll_queue *queue);

/* Counts the use until now. half_life_ns: LL_QUEUE_NONE: use never gets less. */
void ll_queue_charge(struct ll_queue *queue, uint64_t now_ns, uint64_t half_life_ns);

/* Puts the waiting jobs in order. The order stays until the next call. */
void ll_queue_arrange(struct ll_queue *queue, const struct ll_queue_rules *rules, uint64_t now_ns);

/* Makes the plan, if something has changed. -ENOMEM: the old plan holds. */
int ll_queue_plan(struct ll_queue *queue, uint64_t now_ns);

/* The next waiting job that starts now by the plan; NULL: none. */
struct ll_queue_job *ll_queue_due(const struct ll_queue *queue, uint64_t now_ns);

/* The job starts, on its planned cards. */
void ll_queue_start(struct ll_queue *queue, struct ll_queue_job *job, uint64_t now_ns);

/* Whether a running job may have these amounts and this time from now on, by the rules for a start: on its cards they
 * fit beside what other jobs have, guarantees, reservations and windows permit them, and the jobs that it was let
 * forward of start when they are planned to. Of `wanted` only memory_bytes, compute_permille, duration_ns and
 * overtook count. A lent job is asked about as one that is not.
 * Without memory it may not. */
bool ll_queue_may_change(struct ll_queue *queue, const struct ll_queue_job *job, const struct ll_queue_job *wanted,
			 uint64_t now_ns);

/* The cards on which the job, which is due, can start now by the plan too, out of these alone; 0: none. */
uint64_t ll_queue_start_among(struct ll_queue *queue, const struct ll_queue_job *job, uint64_t cards, uint64_t now_ns);

/* When the next job starts by the plan; LL_QUEUE_NONE: none does. */
uint64_t ll_queue_next_ns(const struct ll_queue *queue);

/* When a running job ends by the plan, and when a waiting one does. LL_QUEUE_NONE: never, or it is not planned. */
uint64_t ll_queue_end_ns(const struct ll_queue_job *job);

/* Place of a waiting job in the order, from 1. */
size_t ll_queue_position(const struct ll_queue *queue, const struct ll_queue_job *job);

/* The waiting job right before this one in the order; NULL: it is the first. */
const struct ll_queue_job *ll_queue_ahead(const struct ll_queue *queue, const struct ll_queue_job *job);

/* The job for whose end this one waits: of those that are on its planned cards, or of its tenant, the last that ends
 * before its planned start. NULL: no job's end gives it room (a window, a drained card, others' guarantees). */
const struct ll_queue_job *ll_queue_blocker(const struct ll_queue *queue, const struct ll_queue_job *job);

/* How many of the jobs that run or are ahead of this one have no time of their own. */
size_t ll_queue_untimed_ahead(const struct ll_queue *queue, const struct ll_queue_job *job);

/* What keeps a waiting job from starting now: the rule that refuses it. */
enum ll_queue_rule {
	LL_QUEUE_RULE_NONE,         /* none does, or there is no plan yet */
	LL_QUEUE_RULE_USER_LIMIT,   /* a user of its tenant may not have more */
	LL_QUEUE_RULE_TENANT_LIMIT, /* its tenant may not have more of the group */
	LL_QUEUE_RULE_GUARANTEE,  /* the rest of the group is kept for the guarantee of `tenant`, and perhaps others' */
	LL_QUEUE_RULE_ROOM,       /* others have the room on the cards that it may have */
	LL_QUEUE_RULE_RESERVED,   /* cards are reserved for `tenant` */
	LL_QUEUE_RULE_OUT_OF_USE, /* cards are drained, in maintenance or lost */
	LL_QUEUE_RULE_ORDER,      /* it would put off the start of the job `number`, which is ahead */
};

/* Of which amount the rule speaks. */
enum ll_queue_what { LL_QUEUE_OF_CARDS, LL_QUEUE_OF_MEMORY, LL_QUEUE_OF_COMPUTE, LL_QUEUE_OF_JOBS };

struct ll_queue_why {
	enum ll_queue_rule rule;
	enum ll_queue_what what;
	uint32_t group;      /* of cards */
	uint32_t tenant;     /* LL_QUEUE_NOBODY: none */
	uint32_t card;       /* of OUT_OF_USE and RESERVED: one of them */
	uint64_t number;     /* of ORDER */
	uint64_t wanted;     /* by the job on all its cards; of ROOM by memory or compute: on each card */
	uint64_t used, most; /* of a limit: by it already, and the limit */
	uint64_t left;       /* of GUARANTEE: not covered by any; of ROOM: free, on the card with the most */
	uint64_t begin_ns,
	    end_ns; /* of OUT_OF_USE and RESERVED. begin_ns: in the time of the job. LL_QUEUE_NONE: never */
};

/* Says why the waiting job does not start now, as of the last plan. A held job has no rule. */
void ll_queue_explain(const struct ll_queue *queue, const struct ll_queue_job *job, struct ll_queue_why *ret_why);

enum ll_queue_fault {
	LL_QUEUE_FITS,
	LL_QUEUE_NO_CARDS,      /* it may have fewer cards than it wants, in each group */
	LL_QUEUE_TOO_LARGE,     /* no card has so much memory or compute */
	LL_QUEUE_BEYOND_LIMIT,  /* the tenant may not have so much */
	LL_QUEUE_BEYOND_USER,   /* a user of the tenant may not have so much */
	LL_QUEUE_ALL_GUARANTEED /* beyond its tenant's guarantee, and all the rest is other tenants' guarantee */
};

/* Whether the job could start on the machine without any other job, drained card or interval. */
enum ll_queue_fault ll_queue_check(const struct ll_queue_machine *machine, const struct ll_queue_job *job);

#endif
