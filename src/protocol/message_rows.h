/*
 * message_rows.h - the messages that are rows of a listing, and those that ask for them.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_ROWS_H
#define LOADLINE_PROTOCOL_MESSAGE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/message_header.h"

enum ll_policy_flag {
	LL_POLICY_IS_MINE = 1,  /* the other side's user is in the tenant */
	LL_POLICY_IS_FIRST = 2, /* and gets it without --tenant */
};

/* In these two rows UINT64_MAX means that there is no such limit. used_: what jobs have asked for together. */
struct ll_message_policy_tenant {
	struct ll_message_header header;
	uint64_t weight;
	uint64_t user_cards, user_memory_bytes, user_compute_permille, user_running; /* limits of each user */
	uint64_t used_cards, used_memory_bytes, used_compute_permille, used_jobs;    /* by the other side's user */
	uint64_t jobs;                                                               /* of all users */
	uint32_t flags;                                                              /* enum ll_policy_flag */
	uint32_t classes; /* bit N: enum ll_limit_class N is allowed */
	uint32_t parts, unused;
	char name[LL_NAME_SIZE];
};

struct ll_message_policy_part {
	struct ll_message_header header;
	uint64_t guaranteed_cards, guaranteed_memory_bytes, guaranteed_compute_permille;
	uint64_t limit_cards, limit_memory_bytes, limit_compute_permille;
	uint64_t used_cards, used_memory_bytes, used_compute_permille; /* by all users of the tenant */
	uint32_t is_known; /* 0: the daemon does not know which cards are in the group, and used_ are 0 */
	uint32_t gives_cards;
	char tenant[LL_NAME_SIZE], group[LL_NAME_SIZE];
	uint64_t card_mask; /* the group's cards: a bit for each index in PCI order */
};

/* What the other side's user may borrow now as a member of the tenant, in a group of cards. */
struct ll_message_policy_loan {
	struct ll_message_header header;
	uint64_t lendable_bytes; /* the most for a job of one card */
	uint64_t borrowed_bytes; /* by the user's jobs there, on all cards; not while they sleep */
	char tenant[LL_NAME_SIZE], group[LL_NAME_SIZE];
};

/* The budget of a tenant. */
struct ll_message_policy_budget {
	struct ll_message_header header;
	double gpu_hours, granted_hours; /* granted in the present period */
	uint64_t end_s;                  /* seconds since 1970: when the next period begins */
	uint32_t per;                    /* enum ll_policy_period */
	uint32_t is_known;               /* 0: granted_hours and end_s are not known yet */
	uint32_t borrow_only, unused;    /* then: borrow-only, which acts as refuse */
	char tenant[LL_NAME_SIZE];
};

/* In the order of the words of the configuration. */
enum ll_policy_period { LL_POLICY_DAY, LL_POLICY_WEEK, LL_POLICY_MONTH };

/*
 * LL_MESSAGE_REPORT and LL_MESSAGE_HISTORY (message.h) and their replies.
 */

enum { LL_REPORT_KEY_SIZE = 96, LL_REPORT_BYS = 6 /* enum ll_use_by */ };

struct ll_message_report {
	struct ll_message_header header;
	int64_t since_s, until_s; /* struct ll_use_query */
	uint32_t by;              /* enum ll_use_by */
	uint32_t unused;
};

/* struct ll_use_sum. NAN: unknown. */
struct ll_message_report_row {
	struct ll_message_header header;
	double granted_s, used_s, idle_held_s, memory_byte_s, joules, lent_s, borrowed_s;
	char key[LL_REPORT_KEY_SIZE];
	uint64_t number; /* 0: none, or not known */
	double borrowed_byte_s;
};

/* What a granted GPU hour and a GiB hour of memory cost. */
struct ll_message_report_prices {
	struct ll_message_header header;
	double gpu_hour, gib_hour;
	char currency[LL_NAME_SIZE]; /* empty: not said */
};

/* Of HISTORY too. */
struct ll_message_report_end {
	struct ll_message_header header;
	uint32_t rows;
	uint32_t is_of_one_user; /* only the user's own jobs are in the sums */
	uint32_t has_more;       /* jobs than HISTORY asked for */
	uint32_t unused;
};

/* ---- jobs that have ended: struct ll_history_query and struct ll_past_job (accounts/history.h) ---- */

enum { LL_HISTORY_CARDS_SIZE = 96, LL_HISTORY_HOWS = 10 };

struct ll_message_history {
	struct ll_message_header header;
	int64_t since_s, until_s;
	uint32_t has_uid, uid;
	uint32_t how, most;
	char tenant[LL_NAME_SIZE]; /* empty: any */
};

struct ll_message_history_row {
	struct ll_message_header header;
	uint64_t number;
	int64_t came_s, began_s, ended_s;
	uint64_t memory_bytes, compute_permille, time_ns, used_ns;
	double memory_byte_s;
	uint32_t uid, by_uid;
	uint32_t how, status;
	uint32_t card_count, class;
	char tenant[LL_NAME_SIZE], command[LL_COMMAND_SIZE], name[LL_NAME_SIZE], project[LL_NAME_SIZE];
	char cards[LL_HISTORY_CARDS_SIZE], why[LL_HISTORY_CARDS_SIZE];
	double borrowed_byte_s;
	uint64_t borrowed_ns, slept_ns;
	uint32_t recalls, unused;
	uint64_t lendable_ns;
};

/*
 * The reply to LL_MESSAGE_METRICS (message.h): sums for a program that serves them to everybody who
 * asks (src/exporter). They are about tenants and the machine, not about users or programs.
 *
 * POLICY_TENANT and POLICY_PART come first, for each configured tenant; then METRICS_TENANT for each configured tenant,
 * and for those that were configured when they used a card; METRICS_END is the last one.
 */

enum { LL_METRICS_ADDRESS_SIZE = 128 };

/* The sums of use grow from 0 at loadlined's start, each 9 s, as the rows of the accounts are made; 0 if there are no
 * accounts. */
struct ll_message_metrics_tenant {
	struct ll_message_header header;
	double granted_s, used_s, idle_held_s, memory_byte_s; /* accounts/batch.h */
	uint64_t memory_bytes;                                /* charged to its jobs now */
	uint64_t oldest_wait_s;       /* how long the first of its jobs in the queue has waited; 0: none waits */
	uint32_t running, waiting;    /* jobs */
	char name[LL_NAME_SIZE];      /* empty: jobs of no configured tenant */
	uint64_t borrowed_bytes;      /* of memory_bytes, what its jobs borrow */
	uint32_t borrowing, recalled; /* jobs; recalled: their memory leaves, or has left */
};

enum ll_metrics_accounts {
	LL_METRICS_ACCOUNTS_NONE,    /* loadlined keeps none */
	LL_METRICS_ACCOUNTS_GOOD,    /* the last write succeeded, or none was needed yet */
	LL_METRICS_ACCOUNTS_FAILING, /* the last write failed; rows are kept in memory */
	LL_METRICS_ACCOUNTS_OFF,     /* a newer loadline's file: nothing is counted */
};

struct ll_message_metrics_end {
	struct ll_message_header header;
	uint64_t out_of_use; /* a bit for each index of a card in which no job may start: drained, or in maintenance */
	uint64_t rows, lost_rows; /* of the accounts: not written yet; lost since loadlined's start, for want of room */
	uint32_t accounts;        /* enum ll_metrics_accounts */
	uint32_t has_queue;
	uint32_t hides_others;                 /* `visibility: {others: nothing}` */
	uint32_t ungoverned;                   /* processes on the cards that belong to no job */
	char address[LL_METRICS_ADDRESS_SIZE]; /* serve.metrics; empty: not configured, or longer */
	char page[LL_METRICS_ADDRESS_SIZE];    /* serve.page, the same */
};

/*
 * The rows of the reply to LL_MESSAGE_DECISIONS (message.h).
 */

enum { LL_DECISION_MIXES = 8 };

struct ll_message_decisions {
	struct ll_message_header header;
	char uuid[LL_CARD_UUID_SIZE];
};

/* struct ll_regime_mix (rules/share/regime.h) */
struct ll_decision_mix {
	uint64_t number, used_ns, next_ns;
	double gain;
	uint32_t tries, why, gives_visits, unused;
};

/* The state of the rule before the first decision that follows: struct ll_regime, without a measurement. */
struct ll_message_decisions_state {
	struct ll_message_header header;
	uint64_t number; /* of that decision; 0: there is none */
	uint64_t new_mix, new_mix_ns, credit_at_ns;
	int64_t credit_ns;
	double gain;
	uint32_t gives_visits, why;
	uint32_t mix;      /* index of the present mix, from 1; 0: unknown */
	uint32_t has_half; /* a measurement was incomplete, so the decisions that follow cannot be replayed */
	struct ll_decision_mix mixes[LL_DECISION_MIXES];
};

enum ll_decision_flag {
	LL_DECISION_GIVES_VISITS = 1,
	LL_DECISION_IS_RULED = 2,  /* nothing is measured, because a rule serves these jobs */
	LL_DECISION_WAS_KNOWN = 4, /* a step of the lever: struct ll_lever_choice */
};

struct ll_message_decision {
	struct ll_message_header header;
	uint64_t number;
	uint64_t at_ns, age_ns;
	double gain;
	uint32_t moves, why; /* enum ll_regime_move, ll_regime_why */
	uint32_t flags;      /* enum ll_decision_flag */
	uint32_t block;
	uint32_t jobs;  /* number of DECISION_JOB messages that follow */
	uint32_t lever; /* enum ll_lever_move, of a step of a class's lever; 0: a step of the rule. A step of the lever
			   has moves 0 and IS_RULED, so an older command prints that a rule serves these programs */
	/* of a step of the lever: struct ll_lever_choice, and the rank of the class (enum ll_priority) */
	double part, from_part, busy, weighed_s;
	uint32_t rank, slice_us;
};

struct ll_message_decision_job {
	struct ll_message_header header;
	uint64_t number; /* of the decision */
	uint64_t id, completed, queued_launches, visited_ns;
	double slices, visits, alone; /* launches per second, if there was a verdict */
	uint32_t weight_permille, processes, waits;
	uint32_t slowdown_permille; /* this field and the fields after tenant belong to a step of the lever. Such a step
				       sets id and completed, and no other numbers above (struct ll_lever_gauge) */
	char tenant[LL_NAME_SIZE];
	double held_launches, held_s, open_launches, open_s;
	uint32_t has_slices; /* its time slices are by its weight and its processes */
	uint32_t unused;
};

/*
 * The messages about the queue for the cards of the machine (message.h), which the system's loadlined
 * keeps if a configuration is in force and its sensor reports the cards (daemon/queue/queue.h).
 *
 * A command sends ADMIT for the job that it will start. Replies: QUEUED, as often as something changes, then ADMITTED
 * or REFUSED (-ENOENT: there is no queue; -EACCES: the configuration does not allow the job; -EAGAIN: LL_ADMIT_NO_WAIT;
 * -EBUSY: ask again, the sensor has not reported yet, or a job that comes again has not ended; -ECANCELED: wait_ns are
 * over, or it was canceled). The end of the connection before ADMITTED cancels. After ADMITTED the job registers within
 * 10 s, else its place is free again. A loadlined that knows of no place refuses the job with -ESTALE: `run` then asks
 * with ADMIT again.
 *
 * QUEUE requests the queue: QUEUE_ROW and QUEUE_WINDOW messages, then QUEUE_END; or REFUSED (-ENOENT). QUEUE_ACT
 * changes the queue; reply: ACCEPTED or REFUSED. SIGNAL goes to a job's monitor: the job's first process shall get the
 * signal; it has no reply.
 *
 * Moments are seconds since 1970, lengths of time are nanoseconds. In both 0 means that there is none.
 */

enum {
	LL_QUEUE_CARDS_OF_JOB = 16, /* the most cards that a job of the queue has */
	LL_ADMIT_CARDS = 1024,      /* that a job may ask for */
	LL_ADMIT_SIGNALS = 64,
};

enum ll_admit_flag {
	LL_ADMIT_NO_WAIT = 1,       /* a place now, or none */
	LL_ADMIT_HAS_CARDS = 2,     /* card_mask and slice say which cards it may have */
	LL_ADMIT_AFTER_OK = 4,      /* `after` must be of the same user, and end with status 0 */
	LL_ADMIT_TELLS_STATUS = 8,  /* JOB_STATUS will follow the end of its first process */
	LL_ADMIT_HAS_PROJECT = 64,  /* it names a project when it registers */
	LL_ADMIT_CAN_RESTART = 128, /* who asks would start its command again */
};

struct ll_message_admit {
	struct ll_message_header header;
	uint64_t job; /* token[0] of the job that will register */
	struct ll_limits limits;
	uint64_t said; /* as in struct ll_message_job */
	uint64_t time_ns, wait_ns;
	uint64_t after;      /* number of a job that must have ended before; 0: none */
	uint64_t card_mask;  /* a bit for each index in PCI order */
	uint32_t flags;      /* enum ll_admit_flag */
	uint32_t card_count; /* 0: 1, or those of card_mask */
	int32_t slice;       /* of the one card of card_mask; -1: none */
	/* the signal that the job wishes, so long before its end; 0: none */
	uint16_t signal, signal_before_s;
	char tenant[LL_NAME_SIZE]; /* empty: the first tenant of the user */
	char command[LL_COMMAND_SIZE];
	char name[LL_NAME_SIZE]; /* as in struct ll_message_job */
	uint64_t again;          /* its number, if it was put back into the queue (JOB_STATUS); 0: it is new */
};

/* What a waiting job waits for. */
enum ll_queue_wait {
	LL_QUEUE_WAITS_FOR_ROOM = 1, /* room that no job's end gives: a card out of use, a reservation, a limit */
	LL_QUEUE_WAITS_FOR_JOB,      /* the end of the job waits.number */
	LL_QUEUE_WAITS_AFTER,        /* the end of the job waits.number, by --after */
	LL_QUEUE_WAITS_FOR_OPERATOR, /* it is paused by one */
	LL_QUEUE_WAITS_FOR_OWNER,    /* it is paused by its user */
	LL_QUEUE_WAITS_FOR_UNUSED,   /* its user has had a place without a job */
};

struct ll_queue_waits {
	uint64_t number, until_s; /* of that job; 0: not told, or unknown */
	uint32_t uid, kind;       /* enum ll_queue_wait; 0: it does not wait */
};

/* The rule that keeps a waiting job from starting now. */
enum ll_queue_why_rule {
	LL_QUEUE_WHY_USER_LIMIT = 1, /* each user of the tenant `of` may have `most`, and has `used` */
	LL_QUEUE_WHY_TENANT_LIMIT,   /* the tenant `of` may have `most` of the cards, and has `used` */
	LL_QUEUE_WHY_GUARANTEE,      /* `used` is kept for the guarantee of the tenant `of`, and `left` is for all */
	LL_QUEUE_WHY_ROOM,       /* others have it: `left` is free; of memory and compute on the card with the most */
	LL_QUEUE_WHY_RESERVED,   /* cards are reserved for the tenant `of` */
	LL_QUEUE_WHY_OUT_OF_USE, /* cards are drained, in maintenance or lost; of: the reason; empty: not said */
	LL_QUEUE_WHY_ORDER,      /* it would put off the job `number`, which starts at begin_s */
	LL_QUEUE_WHY_HIGH, /* class high is for what the tenant `of` is guaranteed, and its other jobs have that */
};

enum ll_queue_why_what { LL_QUEUE_WHAT_CARDS, LL_QUEUE_WHAT_MEMORY, LL_QUEUE_WHAT_COMPUTE, LL_QUEUE_WHAT_JOBS };

#define LL_QUEUE_NOT_TOLD UINT64_MAX

struct ll_queue_why_told {
	uint64_t number;                   /* 0: none, or not told */
	uint64_t wanted, used, most, left; /* cards, bytes, permille or jobs (what); LL_QUEUE_NOT_TOLD */
	uint64_t begin_s, end_s;           /* of RESERVED and OUT_OF_USE. begin_s 0: it has begun */
	uint32_t uid;                      /* of the job `number`; UINT32_MAX: not told */
	uint32_t rule, what;               /* rule 0: not known */
	uint32_t unused;
	char of[LL_NAME_SIZE];    /* empty: not told */
	char cards[LL_NAME_SIZE]; /* the group of cards */
};

/* Replies to ADMIT until ADMITTED or REFUSED: when something has changed, and each 10 s. */
struct ll_message_queued {
	struct ll_message_header header;
	uint64_t number;            /* of the job in the queue */
	uint64_t start_s;           /* estimate */
	uint32_t position, untimed; /* untimed: jobs that run or are ahead, and have no --time */
	struct ll_queue_waits waits;
	struct ll_queue_why_told why;
};

struct ll_message_admitted {
	struct ll_message_header header;
	uint64_t number;
	struct ll_limits limits;
	uint64_t end_s; /* when the job will be ended */
	uint32_t card_count, unused;
	char tenant[LL_NAME_SIZE];
	char uuids[LL_QUEUE_CARDS_OF_JOB][LL_CARD_UUID_SIZE];
};

enum ll_queue_row_flag {
	LL_QUEUE_IS_RUNNING = 1,
	LL_QUEUE_IS_PAUSED = 2,
	LL_QUEUE_IS_AFTER = 4,    /* waits for the end of another job */
	LL_QUEUE_IS_ADMITTED = 8, /* has its place, and has not registered yet */
	LL_QUEUE_HAS_TIME = 16,
	LL_QUEUE_IS_LENT = 32,      /* borrows what others do not use */
	LL_QUEUE_IS_RECALLED = 64,  /* its memory leaves its cards, or has left */
	LL_QUEUE_IS_RESERVED = 128, /* has its place, and waits for borrowers to leave it */
};

struct ll_queue_place {
	uint16_t index;
	int16_t slice; /* a MIG slice; -1: the whole card */
};

struct ll_message_queue_row {
	struct ll_message_header header;
	uint64_t number, job_number; /* job_number: of JOB_ROW; 0: it is not registered */
	uint64_t memory_bytes, time_ns;
	uint64_t since_s;        /* when it came; of a running one, when it started */
	uint64_t start_s, end_s; /* estimates */
	uint32_t uid, position, untimed, flags;
	uint32_t compute_permille, card_count;
	struct ll_queue_place places[LL_QUEUE_CARDS_OF_JOB]; /* of a waiting job the planned ones */
	uint32_t place_count, unused;
	struct ll_queue_waits waits;
	char tenant[LL_NAME_SIZE];
	char command[LL_COMMAND_SIZE];
	struct ll_queue_why_told why; /* of a waiting job */
	char name[LL_NAME_SIZE];      /* empty: none */
	uint64_t recalled_for;        /* the job that needed its room; 0: none, or not told */
};

/* A card that is out of use, or will be: drained, or in a window of maintenance; or a reservation (tenant). */
struct ll_message_queue_window {
	struct ll_message_header header;
	uint64_t begin_s, end_s; /* begin_s 0: since before it was seen (a lost card). end_s 0: until `drain --undo` */
	uint64_t card_mask;
	char tenant[LL_NAME_SIZE];
	char name[LL_NAME_SIZE]; /* why the card was drained: "Xid 79"; empty: by an operator, or it was not */
};

enum ll_queue_act {
	LL_QUEUE_CANCEL = 1,
	LL_QUEUE_PAUSE,
	LL_QUEUE_RELEASE,
	LL_QUEUE_MOVE,  /* value: the position */
	LL_QUEUE_TIME,  /* value: nanoseconds more */
	LL_QUEUE_DRAIN, /* value: from this moment on; card_mask */
	LL_QUEUE_UNDRAIN,
	LL_QUEUE_DRAIN_AND_STOP, /* as DRAIN, from now on; jobs on the cards are stopped as at the end of their time */
};

struct ll_message_queue_act {
	struct ll_message_header header;
	uint64_t number, value, card_mask;
	uint32_t act; /* enum ll_queue_act */
	uint32_t unused;
};

/* To the job's monitor, which has the job's user. The signal is for the first process of the job, or for all that it
 * finds. */
struct ll_message_signal {
	struct ll_message_header header;
	uint32_t signal, is_for_all;
};

/* How the first process of a job ended. The job's monitor sends it before JOB_ENDED, if the kernel tells the status
 * (base/process.h), without a reply. A command of the job's user may send it too, as `submit` does, whose child the
 * process is. Reply: ACCEPTED, with the job's number if it goes back into the queue (`again` of ADMIT), else 0; or
 * REFUSED with -ESRCH: the user has no such job. */
struct ll_message_job_status {
	struct ll_message_header header;
	uint64_t job;    /* token[0] */
	uint32_t status; /* as waitpid() gives it */
	uint32_t unused;
};

/*
 * The messages about cards and the processes on them: from the sensor to loadlined, and from
 * loadlined to a command (message.h, daemon/machine/machine.h).
 */

enum ll_sense_card_flag {
	LL_SENSE_IS_LOST = 1,    /* it does not answer */
	LL_SENSE_HAS_SLICES = 2, /* in MIG mode: it runs nothing itself */
	LL_SENSE_IS_BUSY = 4,    /* the newest sample of utilisation has work */
	/* of SENSED: a process on it is a synthetic load: a hold that watches jobs is it, or started it */
	LL_SENSE_HAS_SYNTHETIC = 8,
};

enum { LL_SENSE_NAME_SIZE = 96 };

/* A card, or a MIG slice. Unknown numbers are 0. */
struct ll_message_sense_card {
	struct ll_message_header header;
	uint64_t memory_bytes, usable_bytes, used_bytes;
	uint64_t watched_ns; /* for how long the sensor has read its utilisation without a gap */
	uint64_t idle_ns;    /* for how long of watched_ns, up to now, it has had no work */
	uint64_t busy_ns;    /* time with work since the card's first round: a counter of this sensor */
	uint32_t index;      /* in PCI order; a slice has its card's */
	int32_t slice;       /* -1: the whole card */
	int32_t numa_node;   /* -1: unknown */
	uint32_t flags;      /* enum ll_sense_card_flag */
	char uuid[LL_CARD_UUID_SIZE];
	char bus_id[32]; /* "0000:65:00.0" */
	char name[LL_SENSE_NAME_SIZE];
	/* Of SENSED: the last fault that the driver has reported (Xid), its age, and the number of faults. 0: none */
	uint64_t xid, xid_age_ns, xids;
	uint64_t energy_mj; /* the card's counter, since the driver was loaded; 0: unknown, and of a slice */
	uint64_t sm_count;  /* 0: unknown */
};

/* When a process last had work on its card, as far as the use of the whole card tells. The driver does not tell
 * processes apart. */
enum ll_sense_last {
	LL_SENSE_LAST_UNKNOWN,  /* the sensor has not looked, or the card has no such reading */
	LL_SENSE_LAST_BUSY,     /* unknown: the card has work now, and other processes are on it */
	LL_SENSE_LAST_NOW,      /* the card has work now, and no other process is on it */
	LL_SENSE_LAST_AGO,      /* last_ns; no other process was on the card then */
	LL_SENSE_LAST_AT_LEAST, /* last_ns or longer */
};

enum { LL_SENSE_ANCESTORS = 16, LL_SENSE_PATH_SIZE = 256 };

enum ll_sense_process_flag {
	LL_SENSE_IS_ALLOWED = 1,    /* of SENSED: the configuration leaves this program alone */
	LL_SENSE_IS_UNGOVERNED = 2, /* of SENSED: it belongs to no job */
};

/* A process on a card. Process ids are those of the sensor's PID namespace, which is loadlined's. */
struct ll_message_sense_process {
	struct ll_message_header header;
	uint64_t used_bytes;  /* UINT64_MAX: the driver does not tell */
	uint64_t age_ns;      /* since its start; UINT64_MAX: unknown */
	uint64_t seen_ns;     /* since the sensor first saw it on the card */
	uint64_t last_ns;     /* LL_SENSE_LAST_AGO, LL_SENSE_LAST_AT_LEAST */
	uint64_t start_ticks; /* in /proc/PID/stat; with the pid it identifies the process; 0: unknown */
	uint64_t job_number;  /* of SENSED: the job to which the process belongs; 0: none */
	uint32_t pid, uid;
	uint32_t last;                          /* enum ll_sense_last */
	uint32_t flags;                         /* enum ll_sense_process_flag */
	uint32_t ancestors[LL_SENSE_ANCESTORS]; /* its parent first; 0 ends the list */
	char uuid[LL_CARD_UUID_SIZE];
	char command[LL_COMMAND_SIZE];
	char program[LL_SENSE_PATH_SIZE]; /* /proc/PID/exe, if it is root's; else empty */
	char cgroup[LL_CGROUP_SIZE];      /* may be cut */
};

/* A fault of a card. */
struct ll_message_sense_health {
	struct ll_message_header header;
	uint64_t xid;
	char uuid[LL_CARD_UUID_SIZE];
};

/* In the order of ll_config_conditions (config/keys.h). */
enum ll_sense_condition {
	LL_SENSE_ROW_REMAP_FAILURE, /* 0 or 1 */
	LL_SENSE_ROW_REMAP_PENDING, /* 0 or 1 */
	LL_SENSE_ECC_UNCORRECTED,   /* a count */
	LL_SENSE_THERMAL_SLOWDOWN,  /* 0 or 1 */
	LL_SENSE_NVLINK_ERRORS,     /* a count */
	LL_SENSE_CONDITIONS,
};

/* What the driver says of a card's faults besides Xids, each 30 s; UINT64_MAX: it does not tell. */
struct ll_message_sense_conditions {
	struct ll_message_header header;
	uint64_t values[8]; /* LL_SENSE_CONDITIONS of them */
	char uuid[LL_CARD_UUID_SIZE];
};

/* Of SENSED: a card that gets no jobs, because an operator or a fault has drained it. */
struct ll_message_sense_drained {
	struct ll_message_header header;
	uint64_t since_s; /* seconds since 1970; it may be later */
	uint32_t index, unused;
	char reason[LL_NAME_SIZE]; /* "Xid 79"; empty: an operator's */
};

struct ll_message_sense_end {
	struct ll_message_header header;
	uint32_t cards, processes;
	uint64_t silent_ns; /* of SENSED: since the sensor's last message; UINT64_MAX: no whole report has come */
	char reason[LL_REASON_SIZE]; /* why there are no cards: no driver, … Empty: there are some */
};

#endif
