/*
 * message.h - the messages between loadlined, the monitors of jobs, and commands.
 *
 * A message is one packet of a SOCK_SEQPACKET socket: a structure of fixed size in the machine's byte order. Different
 * versions of loadline talk to each other by these rules:
 *
 *   - A kind keeps its number and its fields for ever. New fields are added at the end. A field
 *     that nobody reads any more is called reserved, and is 0.
 *   - A receiver ignores the unknown end of a longer message, and reads 0 for the missing fields of
 *     a shorter one. It refuses a message only if it is shorter than in the first version.
 *   - A receiver replies to an unknown kind with LL_MESSAGE_REFUSED (-ENOTSUP), and keeps the
 *     connection.
 *   - HELLO and WELCOME carry the version of the protocol, and one bit for each optional feature.
 *     A side uses only the features that the other side has a bit for.
 *   - Every version understands HANDOVER, so that an old daemon can make room for a new one.
 *
 * A decoded message needs no further checks: its texts are printable UTF-8 that ends with a NUL, and its numbers are in
 * their ranges.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_H
#define LOADLINE_PROTOCOL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/message_event.h"
#include "protocol/message_header.h"
#include "protocol/message_move.h"
#include "protocol/message_rows.h"
#include "protocol/program.h"
#include "protocol/words.h"

enum {
	LL_PROTOCOL_VERSION = 1,
	LL_MESSAGE_MAX = 2048, /* bytes; larger than any kind of this version, for kinds of later versions */
};

enum ll_message_kind {
	/* the first message of a connection; with a descriptor of the sender (process.h), if it has one */
	LL_MESSAGE_HELLO = 1,
	LL_MESSAGE_WELCOME = 2, /* reply to HELLO */
	LL_MESSAGE_REFUSED = 3, /* reply to a request that failed */
	LL_MESSAGE_JOB = 4, /* a monitor registers its job. Descriptors: the job's first process, the lifeline, and, if
			       a former daemon made them, the page and the orders */
	/* reply to JOB. Descriptors, which the monitor keeps: the page and the orders (writable) */
	LL_MESSAGE_ACCEPTED = 5,
	LL_MESSAGE_JOB_ENDED = 6, /* the job's process tree has ended; no reply */
	LL_MESSAGE_LIST = 7,      /* requests the books: JOB_ROW messages and what follows them, then LIST_END */
	LL_MESSAGE_JOB_ROW = 8,
	LL_MESSAGE_PROCESS_ROW = 9, /* reserved: an older daemon sends it, and nobody reads it */
	LL_MESSAGE_LIST_END = 10,
	LL_MESSAGE_HANDOVER = 11,    /* a newer version wants to serve */
	LL_MESSAGE_HANDED_OVER = 12, /* reply, with the listening socket. The old daemon then ends */
	LL_MESSAGE_TENANT_ROW = 13,  /* follows the rows of its jobs */
	/* `run`: the job may use this card. Reply: ACCEPTED, or REFUSED with the sum of the requests so far */
	LL_MESSAGE_BIND = 14,
	LL_MESSAGE_CLAIM = 15, /* a process requests a slot of its job's page for a card */
	/* reply to CLAIM. Descriptors: the page, and the orders (read-only). REFUSED with -EAGAIN: the daemon does not
	 * know the job or see the process yet; send CLAIM again. REFUSED with -ESTALE: the slot is not the process's;
	 * it may request another one */
	LL_MESSAGE_CLAIMED = 16,
	LL_MESSAGE_RELEASE = 17,    /* the process returns a slot in which no memory is charged; no reply */
	LL_MESSAGE_WAKE = 18,       /* the daemon shall read the slot again; no reply */
	LL_MESSAGE_SET = 19,        /* a command changes limits of a job. Reply: ACCEPTED or REFUSED */
	LL_MESSAGE_CHECKPOINT = 20, /* a command reports what the driver's checkpoint did to a process. Descriptor: of
				       that process. Reply: ACCEPTED or REFUSED */
	/* A hold subscribes to the pages of all present and future jobs; the daemon sends PAGE for each. A subscriber
	 * does not keep the daemon from ending. If a hold does not read its messages, the daemon closes its connection,
	 * and the hold connects again. */
	LL_MESSAGE_WATCH = 21,
	LL_MESSAGE_PAGE = 22,      /* descriptors: the page and the orders, both read-only */
	LL_MESSAGE_PAGE_GONE = 23, /* the job has ended */
	LL_MESSAGE_CARD_ROW = 24,  /* a job on a card; follows the job's row */
	LL_MESSAGE_CLAIM_ROW = 25, /* a process on a card; follows the row of its job on the card */

	/* Moves of memory off a card and back: struct ll_message_move. An evictable process has one connection for each
	 * of its cards, besides the connection of its claims. The process moves its memory itself; loadlined decides
	 * when. These messages have no reply of their own: a later message reports the effect. */
	LL_MESSAGE_EVICTABLE = 26, /* the first message: job, slot and slot_token; value: enum ll_move_state; bytes,
				      away_bytes, free_bytes, flags. REFUSED as for CLAIM */
	LL_MESSAGE_SIZES = 27,  /* bytes: memory that can be moved; pool_bytes: host memory that is allocated for it */
	LL_MESSAGE_QUIET = 28,  /* the process is stopped. bytes: memory that will be evicted */
	LL_MESSAGE_BUSY = 29,   /* the process cannot be evicted now; reason says why. It goes on */
	LL_MESSAGE_COPIED = 30, /* away_bytes are off the card */
	/* all of the memory is off the card; after STAY: the memory that was off the card before */
	LL_MESSAGE_AWAY = 31,
	LL_MESSAGE_NO_ROOM = 32, /* the process resumes, and the card has no room. free_bytes */
	LL_MESSAGE_BACK = 33,  /* the memory is on the card, and the process goes on. value: the driver's error, if the
				  process has lost the card; it then goes on without its memory */
	LL_MESSAGE_WANT = 34,  /* one of its threads waits to use the card */
	LL_MESSAGE_SHORT = 35, /* an allocation of that many bytes waits for room on the card. LL_MOVE_BY_CHUNKS */
	LL_MESSAGE_MEASURED = 36, /* reply to MEASURE: free_bytes of the card, and the value of MEASURE */
	/* To a process. A command sends EVICT, SUSPEND and RESUME to loadlined: job is the first token of JOB_ROW, with
	 * uuid and index as in CLAIM_ROW. If one command moves several programs, slot is their number and slot_token is
	 * a number that the command chooses. loadlined then waits for all the requests, and the programs stop together.
	 * loadlined replies with PROGRESS at least once a second, and at the end with MOVED or REFUSED */
	LL_MESSAGE_EVICT = 37,   /* value: ns that the process may take to become quiet. LL_MOVE_BY_HAND. LL_MOVE_HOLD:
				    the process becomes quiet, and its memory is copied at the next EVICT */
	LL_MESSAGE_SUSPEND = 38, /* as EVICT, but the memory stays on the card */
	/* the memory shall return to the card, and the process shall go on. LL_MOVE_HOLD: the memory returns, and the
	   process goes on at the next RESUME; it sends COPIED when all memory is back */
	LL_MESSAGE_RESUME = 39,
	LL_MESSAGE_STAY = 40,    /* after RESUME: the process frees the memory that has come back */
	LL_MESSAGE_ROOM = 41,    /* reply to SHORT. value: enum ll_move_room */
	LL_MESSAGE_MEASURE = 42, /* value: a number that the reply repeats. It identifies a reply that comes too late */
	LL_MESSAGE_PROGRESS = 43, /* bytes, away_bytes; reason: the cause of the wait. LL_MOVE_HAS_ROOM */
	LL_MESSAGE_MOVED = 44,    /* bytes; value: duration in ns. LL_MOVE_ALREADY */
	/* Movable memory that is shared by cuIpcGetMemHandle: struct ll_message_share. loadlined keeps descriptors of
	 * the memory, and gives them to processes that have its key. SHARE and UNSHARE use the connection of EVICTABLE,
	 * and have no reply */
	LL_MESSAGE_SHARE = 45,   /* key, bytes; first and count of the handles in this message, and their sizes */
	LL_MESSAGE_UNSHARE = 46, /* key: the allocation was freed */
	LL_MESSAGE_OPEN = 47, /* key; first: of the requested handles. Reply: OPENED, or REFUSED with -ENOENT: no known
				 process shares it */
	LL_MESSAGE_OPENED = 48, /* fields as in SHARE */
	/* Memory on another card of the host: struct ll_message_move, on the connection of EVICTABLE. */
	LL_MESSAGE_NEIGHBOUR = 49,   /* a process reports about the card `uuid`: away_bytes that it has there, with the
					end of its move. LL_MOVE_IS_READ: free_bytes, and value: used bytes, without
					synthetic loads. LL_MOVE_WANTS_DESTINATION, without a card: the process has
					reported all cards, and waits for DESTINATION before it copies */
	LL_MESSAGE_DESTINATION = 50, /* uuid: the card to which the memory is copied. Empty: it is copied to the host,
					and so is memory that is on another card already */
	/* How the rule shared a card lately (daemon/arbiter/decisions.h). A command sends DECISIONS with the card's
	 * uuid. Reply: DECISIONS_STATE, if the card is known; each DECISION, followed by its jobs; DECISIONS_END. If
	 * numbers are missing, loadlined dropped the oldest decisions while it sent the reply: send DECISIONS again */
	LL_MESSAGE_DECISIONS = 51,
	LL_MESSAGE_DECISIONS_STATE = 52,
	LL_MESSAGE_DECISION = 53,
	LL_MESSAGE_DECISION_JOB = 54,
	LL_MESSAGE_DECISIONS_END = 55,
	/* What the other side may have by the configuration that the system's loadlined has in force
	 * (daemon/policy/policy.h). A command sends POLICY. Reply: for each tenant of its user POLICY_TENANT, followed
	 * by a POLICY_PART for each group of cards in which the tenant has a guarantee or a limit; POLICY_END. Admins
	 * and operators get all tenants */
	LL_MESSAGE_POLICY = 56,
	LL_MESSAGE_POLICY_TENANT = 57,
	LL_MESSAGE_POLICY_PART = 58,
	LL_MESSAGE_POLICY_END = 59,
	/* Sums of the accounts (accounts/report.h). A command sends REPORT. Reply: each REPORT_ROW, then REPORT_END.
	 * Root and admins get the use of all; others get what their own jobs used. REFUSED: -ENOENT, if this loadlined
	 * has no accounts; -EBUSY, if it reads too many reports already: send REPORT again */
	LL_MESSAGE_REPORT = 70,
	LL_MESSAGE_REPORT_ROW = 71,
	LL_MESSAGE_REPORT_END = 72,
	/* Jobs that have ended, the last first. Reply: each HISTORY_ROW, then REPORT_END; REFUSED as for REPORT. Users
	 * see whose use they see in REPORT, and commands as `visibility: commands` says */
	LL_MESSAGE_HISTORY = 110,
	LL_MESSAGE_HISTORY_ROW = 111,
	/* A process that knows no job asks in the control group of which job it is. Reply: OWN_SETTINGS, or REFUSED
	 * with -ENOENT: of none */
	LL_MESSAGE_OWN_JOB = 80,
	LL_MESSAGE_OWN_SETTINGS = 81, /* text: as in LOADLINE_RUN (run_settings.h) */
	LL_MESSAGE_ADMIT = 60,        /* message_rows.h, as all of the queue */
	LL_MESSAGE_QUEUED = 61,
	LL_MESSAGE_ADMITTED = 62,
	LL_MESSAGE_QUEUE = 63,
	LL_MESSAGE_QUEUE_ROW = 64,
	LL_MESSAGE_QUEUE_WINDOW = 65,
	LL_MESSAGE_QUEUE_END = 66,
	LL_MESSAGE_QUEUE_ACT = 67,
	LL_MESSAGE_SIGNAL = 68,
	LL_MESSAGE_JOB_STATUS = 82,
	/* What the sensor reads from the driver (daemon/machine/machine.h). It sends them in rounds, without replies:
	 * SENSE_CARD for each card, SENSE_PROCESS for each process on a card, SENSE_HEALTH for each new fault,
	 * SENSE_END. A command sends SENSED, and loadlined replies with the last round in the same messages; SENSE_END
	 * is the last one */
	LL_MESSAGE_SENSE_CARD = 75,
	LL_MESSAGE_SENSE_PROCESS = 76,
	LL_MESSAGE_SENSE_HEALTH = 77,
	LL_MESSAGE_SENSE_END = 78,
	LL_MESSAGE_SENSED = 79,
	LL_MESSAGE_SENSE_CONDITIONS = 89, /* of the sensor's round, before SENSE_END */
	LL_MESSAGE_SENSE_DRAINED = 90,    /* of the reply to SENSED, before SENSE_END */
	LL_MESSAGE_EVENT = 88,   /* to loadline-notify, and to the monitor of a job; no reply (message_event.h) */
	LL_MESSAGE_METRICS = 97, /* message_rows.h */
	LL_MESSAGE_METRICS_TENANT = 98,
	LL_MESSAGE_METRICS_END = 99,
	LL_MESSAGE_POLICY_BUDGET = 93, /* follows POLICY_TENANT, if the tenant has a budget */
	LL_MESSAGE_POLICY_LOAN = 112,  /* before POLICY_TENANT: for each group, if what stands idle is lent */
	LL_MESSAGE_REPORT_PRICES = 94, /* before REPORT_END, if the configuration has prices */
};

enum ll_message_role {
	LL_ROLE_MONITOR = 1,
	LL_ROLE_COMMAND = 2,
	LL_ROLE_PROCESS = 3,
	LL_ROLE_HOLD = 4,
	LL_ROLE_SENSOR = 5, /* of loadlined's own user, or root */
};

enum ll_job_state {
	LL_JOB_QUEUED = 1,
	LL_JOB_RESERVED = 2,
	LL_JOB_RUNNING = 3,
	LL_JOB_SUSPENDED = 4,
	LL_JOB_EVICTED = 5,
	LL_JOB_ENDED = 6,
};

enum ll_job_flag {
	LL_JOB_NAMED = 1,        /* the user named the tenant; jobs of the same name are one tenant */
	LL_JOB_UNRESPONSIVE = 2, /* its monitor lives, and has had no connection for 5 s */
	LL_JOB_UNWATCHED = 4,    /* it has no monitor */
	LL_JOB_CONTAINER = 512,  /* its first process is that of a container, whose control group is the job's */
	LL_JOB_HAS_GROUP = 256,  /* its processes are known by a control group of the job, not only by its token */
};

/* Whether loadline-keeper serves (keeper.h). */
enum ll_keeper_state {
	LL_KEEPER_UNKNOWN, /* not asked yet, or a user's loadlined, which has none */
	LL_KEEPER_PRESENT, /* it has answered */
	LL_KEEPER_ABSENT,  /* the last attempt to reach it failed */
	LL_KEEPER_REFUSES, /* it refuses all requests: no control groups of version 2 are mounted */
};

/* What the configuration in force orders. */
enum ll_policy_order {
	LL_POLICY_FENCE = 1, /* device files of the cards open in jobs alone */
};

struct ll_message_hello {
	struct ll_message_header header;
	uint32_t protocol, role;
	uint64_t capabilities;
	uint64_t version; /* ll_version_number */
	char version_text[LL_VERSION_SIZE];
};

struct ll_message_welcome {
	struct ll_message_header header;
	uint32_t protocol;
	uint32_t pid; /* in the daemon's own PID namespace */
	uint64_t capabilities;
	uint64_t version;
	char version_text[LL_VERSION_SIZE];
	uint64_t instance; /* identifies this daemon; each daemon has another one */
	uint64_t age_ns;   /* since its start */
	uint32_t jobs, tenants, connections, reserved;
	uint64_t bad_messages; /* connections that the daemon closed because of malformed messages */
	uint64_t last_job;     /* the highest number that it has given to a job; 0: none yet */
	/* The configuration of the system's daemon, in seconds since 1970. policy_since_s: when it came into force; 0:
	 * none is in force. policy_refused_s: since when the files on the disk are not what is in force; 0: they are.
	 * policy_fault: the first fault of those files */
	uint64_t policy_since_s, policy_refused_s;
	char policy_fault[LL_POLICY_FAULT_SIZE];
	uint32_t keeper;         /* enum ll_keeper_state */
	uint32_t events_waiting; /* because loadline-notify does not listen */
	uint32_t policy_orders;  /* enum ll_policy_order */
	uint32_t is_operator;    /* whether the other side is an operator or an admin of the machine */
};

struct ll_message_refused {
	struct ll_message_header header;
	int32_t code; /* negative errno */
	uint32_t unused;
	char reason[LL_REASON_SIZE];
};

/* The layout is frozen, because two messages contain it. New fields go to the end of those messages. */
struct ll_job_facts {
	uint64_t token[2]; /* random, not 0. token[0] is the id in LOADLINE_RUN; it assigns a process to the job */
	uint64_t reserved;
	struct ll_limits limits;
	uint32_t uid;   /* of the job, in the sender's user namespace */
	uint32_t pid;   /* of its first process, in the sender's PID namespace */
	uint32_t state; /* enum ll_job_state */
	uint32_t flags; /* enum ll_job_flag */
	char tenant[LL_NAME_SIZE];
	char command[LL_COMMAND_SIZE]; /* may be cut */
	char cgroup[LL_CGROUP_SIZE];   /* of the monitor; may be cut */
};

struct ll_message_job {
	struct ll_message_header header;
	struct ll_job_facts job;
	uint64_t program; /* program.h; 0: the job's orders have it, or it is unknown */
	char program_name[LL_PROGRAM_NAME_SIZE];
	uint64_t said; /* enum ll_set_field, enum ll_said: the limits that the user gave. The others may get defaults */
	char project[LL_NAME_SIZE]; /* for the accounts; `run` allows the characters of a tenant's name; empty: none */
	char name[LL_NAME_SIZE];    /* of the job, with the same characters; empty: none */
	/* "NAMESPACE/POD/CONTAINER" of Kubernetes, as the runtime tells it; empty: none. Taken from root alone */
	char pod[LL_POD_SIZE];
};

struct ll_message_accepted {
	struct ll_message_header header;
	uint64_t number; /* of the job; this daemon gave it */
	/* Reply to JOB and BIND. tenant: the configured tenant of the job; empty: no configuration is in force, and
	 * limits are those of the request */
	struct ll_limits limits;
	char tenant[LL_NAME_SIZE];
};

struct ll_message_job_ended {
	struct ll_message_header header;
	uint64_t token[2];
};

struct ll_message_plain { /* LIST */
	struct ll_message_header header;
};

struct ll_message_job_row {
	struct ll_message_header header;
	uint64_t number;
	uint64_t lending;        /* LL_QUEUE_IS_LENT, LL_QUEUE_IS_RECALLED; else 0 */
	struct ll_job_facts job; /* pid and uid are as the daemon sees them */
	uint32_t monitor_pid;    /* as the daemon sees it; 0: none */
	uint32_t processes;
	char tenant[LL_NAME_SIZE];  /* the configured tenant; empty: no configuration is in force */
	char project[LL_NAME_SIZE]; /* empty: none */
	char pod[LL_POD_SIZE];      /* as in struct ll_message_job */
};

struct ll_message_process_row {
	struct ll_message_header header;
	uint64_t reserved[2];
};

struct ll_message_tenant_row {
	struct ll_message_header header;
	uint64_t number;
	struct ll_limits limits; /* those of its first job */
	uint32_t uid, jobs, processes, unused;
	char name[LL_NAME_SIZE];
};

struct ll_message_list_end {
	struct ll_message_header header;
	uint32_t tenants, jobs, processes;
	uint32_t hides_others; /* 1: rows of other users are left out (visibility of the configuration) */
};

struct ll_message_handover {
	struct ll_message_header header;
	uint64_t version;
};

struct ll_message_bind {
	struct ll_message_header header;
	uint64_t job; /* token[0] */
	/* Of the card, for --mem-request: the sum of all requests may not be larger. 0: it may (--overcommit) */
	uint64_t promisable_bytes;
	uint64_t usable_bytes; /* of the card, for status; 0: unknown */
	char uuid[LL_CARD_UUID_SIZE];
};

struct ll_message_claim {
	struct ll_message_header header;
	uint64_t job; /* token[0] */
	/* 0, or the token of the slot that the process has already, from a former daemon */
	uint64_t slot_token;
	uint64_t namespaces, start_ticks; /* as in the page */
	uint64_t clock_ns;                /* CLOCK_MONOTONIC of the process, when it sends the message */
	uint32_t slot;
	int32_t pid;                  /* in `namespaces` */
	char uuid[LL_CARD_UUID_SIZE]; /* empty: the process wants no slot, and only reads; CLAIMED then has the token 0
				       */
	char first_card[LL_CARD_UUID_SIZE]; /* the first of the job's several cards; empty: the job has one card, or
					       `uuid` is the first */
};

struct ll_message_claimed {
	struct ll_message_header header;
	uint64_t slot_token;
	/* added to the process's clock, it gives the daemon's clock; 0: both have the same clock */
	int64_t clock_ahead_ns;
	uint32_t slot, card;
};

struct ll_message_slot { /* RELEASE, WAKE */
	struct ll_message_header header;
	uint64_t slot_token;
	uint32_t slot, unused;
};

enum ll_set_field {
	LL_SET_MEMORY = 1,
	LL_SET_REQUEST = 2,
	LL_SET_COMPUTE = 4,
	LL_SET_WEIGHT = 8,
	LL_SET_PRIORITY = 16,
	LL_SET_SHARING = 64,
	LL_SET_SLOWDOWN = 128,
	LL_SET_OVERCOMMIT = 32, /* the sum of all requests has no limit */
};

struct ll_message_set {
	struct ll_message_header header;
	uint64_t job_number; /* of JOB_ROW */
	uint64_t fields;     /* enum ll_set_field: the limits to change */
	struct ll_limits limits;
	char reason[LL_REASON_SIZE]; /* for the log, if the job is another user's; empty: none was given */
};

/* Beside enum ll_set_field, in struct ll_message_job. */
enum ll_said { LL_SAID_EVICTABLE = 256 };

struct ll_message_checkpoint {
	struct ll_message_header header;
	uint32_t state; /* enum ll_claim_checkpoint */
	uint32_t unused;
};

struct ll_message_page { /* PAGE, PAGE_GONE */
	struct ll_message_header header;
	uint64_t job_number;
};

enum ll_card_flag {
	LL_CARD_IS_HELD = 1,    /* the job wants the card, and another job has the turn */
	LL_CARD_IS_HOLDER = 2,  /* the job has the turn */
	LL_CARD_IS_LOST = 4,    /* a process of the job has no slot, and the limits do not govern it */
	LL_CARD_IS_BENEATH = 8, /* a job of a higher class is on the card */
	LL_CARD_IS_CAPPED = 16, /* the job's cap delays its launches */
	LL_CARD_IS_FORCED = 32, /* a command decided how the card is shared */
	/* What the job reports contradicts the driver (daemon/machine/machine.h). MEMORY: the driver counts more
	 * memory for its processes than their page: driver_bytes. TIME: it reports GPU time in which the card had no
	 * work */
	LL_CARD_MEMORY_MISMATCH = 64,
	LL_CARD_TIME_MISMATCH = 128,
};

enum { LL_MINUTE_PARTS = 12 };

struct ll_message_card_row {
	struct ll_message_header header;
	uint64_t job_number;
	/* memory of its processes, and memory of ended processes that the driver has not freed yet */
	uint64_t used_bytes;
	uint64_t leaving_bytes; /* of used_bytes: memory of ended processes that the driver has not freed yet */
	uint64_t gpu_time_ns, virtual_time_ns;
	int64_t tokens_ns;
	uint64_t lost_ns; /* LL_CARD_IS_LOST: the time since then */
	uint32_t flags;   /* enum ll_card_flag */
	uint32_t claims;
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t repairs; /* how often loadlined found a grant or a token in the page that it had not written */
	struct ll_accounts accounts;
	uint32_t sharing; /* of the card: enum ll_sharing (words.h) */
	/* as measured: the jobs' progress by visits, relative to time slices; the geometric mean by weight; 0:
	 * unknown */
	uint32_t visits_permille;
	/* Of the job: enum ll_shared; recent_permille: its part of the card's time in the last recent_ns. The next
	 * three are a measurement of the job beside the present jobs: its speed by slices and by visits, relative to
	 * its speed in a visit, and the age of the measurement. 0: unknown */
	uint32_t shared;
	uint32_t recent_permille;
	uint64_t recent_ns;
	uint32_t slices_speed_permille, visits_speed_permille;
	uint64_t measured_age_ns;
	/* program: the job's program under its limits. others: the programs beside it now, 0: none, or unknown.
	 * company_ns, company_launches: the time beside them in this run, and the launches that the job completed in
	 * that time (company.h) */
	uint64_t program, others, company_ns, company_launches;
	/* held_permille: of the time in which the job has work, the part in which lower classes are held for it.
	 * slowdown_permille: how many times slower than alone the job runs because of lower classes, as measured; 0:
	 * unknown */
	uint32_t held_permille, slowdown_permille;
	uint64_t
	    slice_us; /* how long a stay of the job's contexts is on the card, as ordered; 0: as the driver has it */
	uint64_t driver_bytes; /* memory that the driver counts for the job's processes there; 0: unknown */
	/* of the last period for which the sensor knew the card's use: its length, the job's GPU time in it, and the
	 * time in which the card had work of anybody. 0: unknown */
	uint64_t checked_ns, checked_gpu_ns, checked_busy_ns;
	/* Where the last minute of the job went, by enum ll_time_part (rules/explain/explain.h): how much of the minute
	 * is known, and the parts of that. 0: unknown */
	uint64_t minute_ns;
	uint32_t minute_permille[LL_MINUTE_PARTS];
	/* one process that waited while the others of its job were idle, and for what: 1 + enum ll_wait. 0: none */
	uint32_t waiting_pid, waiting_for;
};

struct ll_message_claim_row {
	struct ll_message_header header;
	uint64_t job_number;
	uint64_t used_bytes, granted_bytes, evictable_bytes, away_bytes;
	uint64_t host_bytes; /* host memory that the process keeps ready for a move */
	uint64_t gpu_time_ns;
	uint64_t taken_age_ns, reserved_age;
	uint64_t idle_ns;    /* since it last had work; 0: it has work; UINT64_MAX: it never had work */
	uint64_t wanting_ns; /* how long it has had launches that wait or run; 0: it has none */
	uint32_t index;      /* "17" in "0/17": its number among the claims of the card */
	uint32_t pid;        /* as the daemon sees it; 0: not visible */
	uint32_t state, residency, checkpoint; /* words.h */
	uint32_t reserved_gate;
	uint32_t flags;
	uint32_t moves; /* completed moves of its memory, off the card or back */
	char note[64];
	char uuid[LL_CARD_UUID_SIZE];
	struct ll_accounts accounts;
	uint64_t neighbour_bytes;          /* its memory that is on another card, or may go there */
	char neighbour[LL_CARD_UUID_SIZE]; /* that card's UUID; empty: none */
};

struct ll_message_own_settings {
	struct ll_message_header header;
	char text[LL_SETTINGS_SIZE];
};

union ll_message {
	struct ll_message_header header;
	struct ll_message_hello hello;
	struct ll_message_welcome welcome;
	struct ll_message_refused refused;
	struct ll_message_job job;
	struct ll_message_accepted accepted;
	struct ll_message_job_ended job_ended;
	struct ll_message_plain plain;
	struct ll_message_job_row job_row;
	struct ll_message_process_row process_row;
	struct ll_message_tenant_row tenant_row;
	struct ll_message_list_end list_end;
	struct ll_message_handover handover;
	struct ll_message_bind bind;
	struct ll_message_claim claim;
	struct ll_message_claimed claimed;
	struct ll_message_slot slot;
	struct ll_message_set set;
	struct ll_message_checkpoint checkpoint;
	struct ll_message_page page;
	struct ll_message_card_row card_row;
	struct ll_message_claim_row claim_row;
	struct ll_message_move move;
	struct ll_message_share share;
	struct ll_message_decisions decisions;
	struct ll_message_decisions_state decisions_state;
	struct ll_message_decision decision;
	struct ll_message_decision_job decision_job;
	struct ll_message_policy_tenant policy_tenant;
	struct ll_message_policy_loan policy_loan;
	struct ll_message_policy_budget policy_budget;
	struct ll_message_report_prices report_prices;
	struct ll_message_policy_part policy_part;
	struct ll_message_own_settings own_settings;
	struct ll_message_admit admit;
	struct ll_message_queued queued;
	struct ll_message_admitted admitted;
	struct ll_message_queue_row queue_row;
	struct ll_message_queue_window queue_window;
	struct ll_message_queue_act queue_act;
	struct ll_message_signal signal;
	struct ll_message_job_status job_status;
	struct ll_message_sense_card sense_card;
	struct ll_message_sense_process sense_process;
	struct ll_message_sense_health sense_health;
	struct ll_message_sense_conditions sense_conditions;
	struct ll_message_sense_drained sense_drained;
	struct ll_message_sense_end sense_end;
	struct ll_message_event event;
	struct ll_message_report report;
	struct ll_message_report_row report_row;
	struct ll_message_report_end report_end;
	struct ll_message_history history;
	struct ll_message_history_row history_row;
	struct ll_message_metrics_tenant metrics_tenant;
	struct ll_message_metrics_end metrics_end;
};

/* "0.1.0" as a number that grows with the version. 0: not a version. */
uint64_t ll_version_number(const char *text);

/* Whether all numbers are in their ranges. */
bool ll_limits_are_valid(const struct ll_limits *limits);

/* Whether the text is printable UTF-8 that ends with a NUL within size bytes. */
int ll_message_text_is_valid(const char *text, size_t size);

/* Copies the text. A text that is too long is cut between characters. A character that cannot be printed becomes
 * '?'. */
void ll_message_text_set(char *ret_text, size_t size, const char *text);

/*
 * Checks a packet and copies it. If the packet is shorter than *ret_message, the rest is 0. -EPROTO: it is not a
 * message. -ENOTSUP: its kind is unknown; the header is copied.
 */
int ll_message_decode(const void *bytes, size_t length, union ll_message *ret_message);

/* Clears the message and sets kind and size. */
void ll_message_init(union ll_message *message, enum ll_message_kind kind);

/* HELLO of a program with that role. version: "0.1.0"; NULL: it is not told. */
void ll_message_init_hello(union ll_message *message, enum ll_message_role role, const char *version);

/* Who may know a field of a row (rows.def). One function of loadlined decides it, through which each row goes
 * (daemon/policy/rights.c). */
enum ll_row_privacy { LL_ROW_ALL, LL_ROW_OWNER, LL_ROW_PROGRAM, LL_ROW_MADE_NAME = 4, LL_ROW_COMPANY = 8 };

/* Clears the row's fields of these sorts. name: what a field of the sort LL_ROW_MADE_NAME becomes. */
void ll_row_hide(union ll_message *row, unsigned sorts, const char *name);

/* Sends without waiting. The caller keeps its descriptors. -EAGAIN: the socket's buffer is full. Other errors:
 * ll_packet_send. */
int ll_message_send(int fd, const union ll_message *message, const int *fds, size_t fd_count);

/*
 * Receives without waiting. Errors are those of ll_message_decode, and -EAGAIN; -EPIPE, -ECONNRESET: the other side has
 * closed the connection; -EMFILE: the process can have no more descriptors, and the message is lost. Descriptors are
 * returned only with a message that was decoded. The caller owns them.
 */
int ll_message_receive(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_fd_count);

void ll_message_close_fds(const int *fds, size_t count);

#endif
