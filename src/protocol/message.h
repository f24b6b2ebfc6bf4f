/*
 * message.h - the messages between loadlined, the monitors of jobs, and commands.
 *
 * A message is one packet of a SOCK_SEQPACKET socket, a structure of fixed size, in the machine's byte order. Versions
 * of loadline that differ talk to each other by these rules:
 *
 *   - A kind keeps its number and its fields for ever. New fields are added at the end. A field that nobody reads any
 *     more is called reserved, and is 0.
 *   - A receiver takes what it knows of a longer message, and zeros for what is missing of a shorter one. A message is
 *     refused only if it is shorter than in the first version.
 *   - A kind that is not known is answered LL_MESSAGE_REFUSED (-ENOTSUP), and the connection goes on.
 *   - HELLO and WELCOME carry the version of the protocol and bits of what each side can do. A side uses nothing that
 * the other has no bit for.
 *   - HANDOVER is understood by every version, so that an old daemon can make room for a new one.
 *
 * Nothing that was decoded needs to be checked again: texts are printable UTF-8 that ends with a NUL, numbers are in
 * their ranges.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_H
#define LOADLINE_PROTOCOL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/program.h"
#include "protocol/words.h"

enum {
	LL_PROTOCOL_VERSION = 1,
	LL_MESSAGE_MAX = 2048, /* bytes; more than any kind needs, for those of later versions */
	LL_MESSAGE_FDS = 4,
};

enum ll_message_kind {
	LL_MESSAGE_HELLO =
	    1, /* the first of a connection; with a descriptor of the sender (process.h), if it has one */
	LL_MESSAGE_WELCOME = 2, /* its answer */
	LL_MESSAGE_REFUSED = 3, /* the answer to a request that failed */
	LL_MESSAGE_JOB = 4, /* a monitor registers its job; descriptors: of the job's first process, the lifeline; if a
			       former daemon made them: the page and the orders */
	LL_MESSAGE_ACCEPTED = 5, /* its answer; descriptors, for the monitor to keep: the page, the orders (writable) */
	LL_MESSAGE_JOB_ENDED = 6, /* the monitor saw the end of the job's process tree; no answer */
	LL_MESSAGE_LIST = 7,      /* asks for the books: LL_MESSAGE_JOB_ROW and ..._PROCESS_ROW, then ..._LIST_END */
	LL_MESSAGE_JOB_ROW = 8,
	LL_MESSAGE_PROCESS_ROW = 9, /* follows the row of its job */
	LL_MESSAGE_LIST_END = 10,
	LL_MESSAGE_HANDOVER = 11,    /* a newer version wants to serve */
	LL_MESSAGE_HANDED_OVER = 12, /* its answer, with the listening socket. The old daemon ends */
	LL_MESSAGE_TENANT_ROW = 13,  /* follows the rows of its jobs */
	LL_MESSAGE_BIND = 14, /* `run`: the job may use this card. ACCEPTED, or REFUSED with what is promised already */
	LL_MESSAGE_CLAIM = 15, /* a process wants a slot of its job's page for a card */
	/* its answer; descriptors: the page, and the orders (read-only). REFUSED: -EAGAIN: the job is not known yet, or
	   the process is not seen yet: ask again; -ESTALE: the slot is not the process's, it may ask for another one */
	LL_MESSAGE_CLAIMED = 16,
	LL_MESSAGE_RELEASE = 17,    /* the process gives a slot back, in which nothing is charged; no answer */
	LL_MESSAGE_WAKE = 18,       /* something in the slot is to be looked at; no answer */
	LL_MESSAGE_SET = 19,        /* a command changes limits of a job. ACCEPTED or REFUSED */
	LL_MESSAGE_CHECKPOINT = 20, /* a command says what the driver's checkpoint did to a process; descriptor: of that
				       process. ACCEPTED or REFUSED */
	/* a hold wants to read the pages of all jobs, now and later: PAGE for each. It does not keep the daemon from
	   ending. A hold that does not read what it is sent loses its connection, and comes again. */
	LL_MESSAGE_WATCH = 21,
	LL_MESSAGE_PAGE = 22,      /* descriptors: the page and the orders, both read-only */
	LL_MESSAGE_PAGE_GONE = 23, /* the job has ended */
	LL_MESSAGE_CARD_ROW = 24,  /* a job on a card; follows the job's row */
	LL_MESSAGE_CLAIM_ROW = 25, /* a process on a card; follows the row of its job on the card */

	/* Memory that leaves its card and returns: struct ll_message_move. An evictable process has a connection for
	   each card on which it is, beside the one of its claims. It moves its memory itself; loadlined says when.
	   None of these is answered, but by what it brings about. */
	LL_MESSAGE_EVICTABLE = 26, /* first: job, slot and slot_token; value: enum ll_move_state; bytes, away_bytes,
				      free_bytes, flags. REFUSED, as CLAIM */
	LL_MESSAGE_SIZES = 27,    /* bytes that can be moved; pool_bytes of the host's memory that are ready for them */
	LL_MESSAGE_QUIET = 28,    /* it is stopped. bytes: what is to leave */
	LL_MESSAGE_BUSY = 29,     /* it cannot leave now: reason says why. It goes on */
	LL_MESSAGE_COPIED = 30,   /* away_bytes have left, or are not back yet */
	LL_MESSAGE_AWAY = 31,     /* all of it has left; after STAY: what had left before */
	LL_MESSAGE_NO_ROOM = 32,  /* it returns, and the card has no room. free_bytes */
	LL_MESSAGE_BACK = 33,     /* its memory is on the card, and it goes on. value: the driver's error, if the card
				     is lost to it: then it goes on without its memory */
	LL_MESSAGE_WANT = 34,     /* one of its threads waits to use the card */
	LL_MESSAGE_SHORT = 35,    /* an allocation of so many bytes waits for room on the card. LL_MOVE_BY_CHUNKS */
	LL_MESSAGE_MEASURED = 36, /* answers MEASURE: free_bytes of the card, and its value */
	/* to a process. A command says the first three to loadlined: job is the first token of JOB_ROW, with uuid and
	   index as in CLAIM_ROW. If the command asks the same of several programs, slot says of how many, and
	   slot_token is a number of its choice: then nothing is done before all are asked, and they stop together. It
	   is answered with PROGRESS at least each second, and in the end MOVED or REFUSED */
	LL_MESSAGE_EVICT = 37, /* value: ns that the process may take to become quiet. LL_MOVE_BY_HAND. LL_MOVE_HOLD: it
				  becomes quiet, and leaves at the next EVICT */
	LL_MESSAGE_SUSPEND = 38,  /* the same, but its memory stays on the card */
	LL_MESSAGE_RESUME = 39,   /* its memory shall return, and it shall go on. LL_MOVE_HOLD: its memory shall return,
				     and it goes on at the next RESUME; it says COPIED when all is back */
	LL_MESSAGE_STAY = 40,     /* after RESUME: it frees what has come back */
	LL_MESSAGE_ROOM = 41,     /* answers SHORT. value: enum ll_move_room */
	LL_MESSAGE_MEASURE = 42,  /* value: a number, to know an answer by that comes when it is true no more */
	LL_MESSAGE_PROGRESS = 43, /* bytes, away_bytes; reason: what is waited for */
	LL_MESSAGE_MOVED = 44,    /* bytes; value: ns that it took. LL_MOVE_ALREADY */
	/* Memory that can be moved, shared by cuIpcGetMemHandle: struct ll_message_share. loadlined keeps descriptors
	   of it, and gives them to processes that have its key. The first two on the connection of EVICTABLE, not
	   answered */
	LL_MESSAGE_SHARE = 45,   /* key, bytes; first and count of the handles that come with it, and their sizes */
	LL_MESSAGE_UNSHARE = 46, /* key: the allocation was freed */
	LL_MESSAGE_OPEN = 47,    /* key; first: of the handles that are wanted. OPENED; REFUSED: -ENOENT: nobody shares
				    it, as far as is known by now */
	LL_MESSAGE_OPENED = 48,  /* as SHARE */
	/* Memory on another card of the host: struct ll_message_move, on the connection of EVICTABLE. */
	LL_MESSAGE_NEIGHBOUR = 49,   /* a process says of the card `uuid`: away_bytes that it has there, with the end of
					its move; LL_MOVE_IS_READ: free_bytes, and value: bytes that are used, but for
					synthetic loads. LL_MOVE_WANTS_DESTINATION, without a card: it has said all that
					it   knows, and   waits for DESTINATION before it leaves */
	LL_MESSAGE_DESTINATION = 50, /* uuid: of the card that memory goes to; empty: to the host, and what is on a card
					already goes on to there */
	/* How a card is shared, as the rule decided it lately (daemon/share/decisions.h). A command asks with the
	   card's uuid: DECISIONS_STATE, if the card is known; each DECISION, and after it its jobs; DECISIONS_END. If
	   numbers are missing, the oldest decisions went while they were sent: ask again */
	LL_MESSAGE_DECISIONS = 51,
	LL_MESSAGE_DECISIONS_STATE = 52,
	LL_MESSAGE_DECISION = 53,
	LL_MESSAGE_DECISION_JOB = 54,
	LL_MESSAGE_DECISIONS_END = 55,
};

enum ll_message_role { LL_ROLE_MONITOR = 1, LL_ROLE_COMMAND = 2, LL_ROLE_PROCESS = 3, LL_ROLE_HOLD = 4 };

enum ll_job_state {
	LL_JOB_QUEUED = 1,
	LL_JOB_RESERVED = 2,
	LL_JOB_RUNNING = 3,
	LL_JOB_SUSPENDED = 4,
	LL_JOB_EVICTED = 5,
	LL_JOB_ENDED = 6,
};

enum ll_job_flag {
	LL_JOB_NAMED = 1,        /* the user named the tenant: jobs of the same name are one tenant */
	LL_JOB_UNRESPONSIVE = 2, /* its monitor lives, and has been without a connection for 5 s */
	LL_JOB_UNWATCHED = 4,    /* it has no monitor */
};

enum {
	LL_VERSION_SIZE = 32,
	LL_NAME_SIZE = 64,
	LL_COMMAND_SIZE = 64,
	LL_CGROUP_SIZE = 256,
	LL_REASON_SIZE = 120,
	LL_CARD_UUID_SIZE = 96,
	LL_MOVE_REASON_SIZE = 160
};

struct ll_message_header {
	uint16_t kind;
	uint16_t size;   /* of the whole message */
	uint32_t serial; /* of a request; its answers repeat it */
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
	uint64_t instance; /* differs from that of each other daemon */
	uint64_t age_ns;   /* since its start */
	uint32_t jobs, tenants, connections, reserved;
	uint64_t bad_messages; /* connections that it ended because of what they sent */
	uint64_t last_job;     /* the highest number that it has given to a job; 0: none has come to it yet */
};

struct ll_message_refused {
	struct ll_message_header header;
	int32_t code; /* negative errno */
	uint32_t unused;
	char reason[LL_REASON_SIZE];
};

/* Frozen, as it is part of two messages: new fields go to the end of those. */
struct ll_job_facts {
	uint64_t
	    token[2]; /* random, not 0; token[0] is the id in LOADLINE_RUN, by which a process belongs to the job */
	uint64_t reserved;
	struct ll_limits limits;
	uint32_t uid;   /* of the job, in the sender's user namespace */
	uint32_t pid;   /* of its first process, in the sender's PID namespace */
	uint32_t state; /* enum ll_job_state */
	uint32_t flags; /* enum ll_job_flag */
	char tenant[LL_NAME_SIZE];
	char command[LL_COMMAND_SIZE]; /* perhaps cut */
	char cgroup[LL_CGROUP_SIZE];   /* of the monitor; perhaps cut */
};

struct ll_message_job {
	struct ll_message_header header;
	struct ll_job_facts job;
	uint64_t program; /* program.h; 0: the job's orders say it, or nobody does */
	char program_name[LL_PROGRAM_NAME_SIZE];
};

struct ll_message_accepted {
	struct ll_message_header header;
	uint64_t number; /* of the job, in this daemon */
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
	uint64_t number, reserved;
	struct ll_job_facts job; /* pid, uid: as the daemon sees them */
	uint32_t monitor_pid;    /* as the daemon sees it; 0: none */
	uint32_t processes;
};

/* LL_PROCESS_USER: it uses a card. One that is both has two rows. */
enum ll_process_role { LL_PROCESS_FIRST = 1 /* what `run` became */, LL_PROCESS_USER = 2 };

struct ll_message_process_row {
	struct ll_message_header header;
	uint64_t job_number;
	uint32_t pid;  /* as the daemon sees it; 0: not seen, or it has ended */
	uint32_t role; /* enum ll_process_role */
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
	uint32_t tenants, jobs, processes, unused;
};

struct ll_message_handover {
	struct ll_message_header header;
	uint64_t version;
};

struct ll_message_bind {
	struct ll_message_header header;
	uint64_t job; /* token[0] */
	/* of the card, for --mem-request: all requests together may not be more. 0: they may (--overcommit) */
	uint64_t promisable_bytes;
	uint64_t usable_bytes; /* of the card, for status; 0: unknown */
	char uuid[LL_CARD_UUID_SIZE];
};

struct ll_message_claim {
	struct ll_message_header header;
	uint64_t job; /* token[0] */
	/* 0, or the token of the slot that the process has already: the daemon is another one than gave it */
	uint64_t slot_token;
	uint64_t namespaces, start_ticks; /* as in the page */
	uint64_t clock_ns;                /* CLOCK_MONOTONIC of the process, just now */
	uint32_t slot;
	int32_t pid;                        /* in `namespaces` */
	char uuid[LL_CARD_UUID_SIZE];       /* empty: it wants no slot, and will only read: CLAIMED has the token 0 */
	char first_card[LL_CARD_UUID_SIZE]; /* of the job's several cards; empty: it has one, or this is it */
};

struct ll_message_claimed {
	struct ll_message_header header;
	uint64_t slot_token;
	int64_t clock_ahead_ns; /* of the daemon's clock, if it is another one than the process's; else 0 */
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
	LL_SET_OVERCOMMIT = 32, /* no limit for all requests together */
};

struct ll_message_set {
	struct ll_message_header header;
	uint64_t job_number; /* of JOB_ROW */
	uint64_t fields;     /* enum ll_set_field: which of the limits are meant */
	struct ll_limits limits;
};

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
	LL_CARD_IS_HELD = 1,    /* it wants the card, and another job has the turn */
	LL_CARD_IS_HOLDER = 2,  /* it has the turn */
	LL_CARD_IS_LOST = 4,    /* a process of it has no slot, and is not held to the limits */
	LL_CARD_IS_BENEATH = 8, /* a job of a higher class is on the card */
	LL_CARD_IS_CAPPED = 16, /* it would launch more, and its cap keeps it from that */
	LL_CARD_IS_FORCED = 32, /* a command decided how the card is shared */
};

struct ll_message_card_row {
	struct ll_message_header header;
	uint64_t job_number;
	uint64_t used_bytes;    /* of its processes, and what ended ones have not given back yet */
	uint64_t leaving_bytes; /* of these: what ended processes have not given back yet */
	uint64_t gpu_time_ns, virtual_time_ns;
	int64_t tokens_ns;
	uint64_t lost_ns; /* LL_CARD_IS_LOST: since when, as an age */
	uint32_t flags;   /* enum ll_card_flag */
	uint32_t claims;
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t repairs; /* how often loadlined found a grant or a token in the page that it had not written */
	struct ll_accounts accounts;
	uint32_t sharing; /* of the card: enum ll_sharing (words.h) */
	/* as measured: the jobs' progress by visits, of that by time slices, the geometric mean by weight; 0: not known
	 */
	uint32_t visits_permille;
	/* The job: enum ll_shared; its part of the card's time lately, and how long that is. What was measured of it
	 * beside these jobs: its speed, of that while it is visited, by slices and by visits, and how long ago. 0: not
	 * known */
	uint32_t shared;
	uint32_t recent_permille;
	uint64_t recent_ns;
	uint32_t slices_speed_permille, visits_speed_permille;
	uint64_t measured_age_ns;
	/* the job's program under its limits; whom it is beside now, 0: nobody, or not known; how long it has been in
	 * this run, and how many launches it completed in that time (company.h) */
	uint64_t program, others, company_ns, company_launches;
	/* of the time in which the job has work lower classes are held for it; and how many times as slow as alone it
	 * is because of them, as it was seen, 0: not known */
	uint32_t held_permille, slowdown_permille;
};

struct ll_message_claim_row {
	struct ll_message_header header;
	uint64_t job_number;
	uint64_t used_bytes, granted_bytes, evictable_bytes, away_bytes;
	uint64_t host_bytes; /* of the host's memory that the process has ready for a move */
	uint64_t gpu_time_ns;
	uint64_t taken_age_ns, reserved_age;
	uint64_t idle_ns;                      /* since it had work; 0: it has some; UINT64_MAX: it never had any */
	uint64_t wanting_ns;                   /* since when it has launches that wait or run; 0: it has none */
	uint32_t index;                        /* "17" in "0/17": its number among the claims of the card */
	uint32_t pid;                          /* as the daemon sees it; 0: not seen */
	uint32_t state, residency, checkpoint; /* words.h */
	uint32_t reserved_gate;
	uint32_t flags;
	uint32_t moves; /* of its memory, off the card or back on it, that have ended */
	char note[64];
	char uuid[LL_CARD_UUID_SIZE];
	struct ll_accounts accounts;
	uint64_t neighbour_bytes;          /* of its memory that is on another card, or may go there */
	char neighbour[LL_CARD_UUID_SIZE]; /* that card's UUID; empty: none */
};

/* What a process does with its memory. */
enum ll_move_state {
	LL_MOVE_HERE,     /* it is on the card, and the process runs */
	LL_MOVE_STOPPED,  /* it is on the card, and the process is stopped */
	LL_MOVE_EVICTING, /* it is being copied to the host */
	LL_MOVE_AWAY,     /* it is in the host */
	LL_MOVE_RESUMING, /* it is being copied back */
};

enum ll_move_flag {
	LL_MOVE_BY_HAND = 1,            /* a person asked for it: nobody else ends it */
	LL_MOVE_BY_CHUNKS = 2,          /* the allocation can wait for each chunk of its memory */
	LL_MOVE_ALREADY = 4,            /* it was so before */
	LL_MOVE_WANTS = 8,              /* it is away, and one of its threads waits to use the card */
	LL_MOVE_IS_READ = 16,           /* the card has just been read */
	LL_MOVE_WANTS_DESTINATION = 32, /* where its memory is to go */
	LL_MOVE_HOLD = 64, /* others of its job do the same: it waits for them. EVICTABLE: it was told so */
};

enum ll_move_room {
	LL_MOVE_ROOM_NONE,   /* there will be none */
	LL_MOVE_ROOM_THERE,  /* try the allocation again */
	LL_MOVE_ROOM_COMING, /* the same, and wait for each chunk: others' memory is leaving */
};

struct ll_message_move {
	struct ll_message_header header;
	uint64_t job;
	uint64_t slot_token;
	uint64_t bytes, away_bytes, free_bytes, pool_bytes;
	uint64_t value;
	uint32_t slot, index;
	uint32_t flags, unused; /* enum ll_move_flag */
	char uuid[LL_CARD_UUID_SIZE];
	char reason[LL_MOVE_REASON_SIZE];
};

struct ll_message_share {
	struct ll_message_header header;
	uint64_t key[2];
	uint64_t bytes; /* of all its handles */
	uint32_t first, count;
	uint64_t handle_bytes[LL_MESSAGE_FDS];
};

enum { LL_DECISION_MIXES = 8 };

struct ll_message_decisions {
	struct ll_message_header header;
	char uuid[LL_CARD_UUID_SIZE];
};

/* struct ll_regime_mix (control/share/regime.h) */
struct ll_decision_mix {
	uint64_t number, used_ns, next_ns;
	double gain;
	uint32_t tries, why, gives_visits, unused;
};

/* The rule before the first decision that follows: struct ll_regime, without a measurement. */
struct ll_message_decisions_state {
	struct ll_message_header header;
	uint64_t number; /* of that decision; 0: there is none */
	uint64_t new_mix, new_mix_ns, credit_at_ns;
	int64_t credit_ns;
	double gain;
	uint32_t gives_visits, why;
	uint32_t mix;      /* index of the present one, from 1; 0: it is not known */
	uint32_t has_half; /* a measurement was half done, so what follows does not replay */
	struct ll_decision_mix mixes[LL_DECISION_MIXES];
};

enum ll_decision_flag {
	LL_DECISION_GIVES_VISITS = 1,
	LL_DECISION_IS_RULED = 2,  /* nothing is measured, because a rule serves the jobs */
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
	uint32_t jobs;  /* that follow */
	uint32_t lever; /* enum ll_lever_move, of a step of a class's lever; 0: a step of the rule. A step of the lever
			   has moves 0, and IS_RULED, so an older command says that a rule serves these programs */
	/* of a step of the lever: struct ll_lever_choice, and the rank of the class (enum ll_priority) */
	double part, from_part, busy, weighed_s;
	uint32_t rank, unused;
};

struct ll_message_decision_job {
	struct ll_message_header header;
	uint64_t number; /* of the decision */
	uint64_t id, completed, queued_launches, visited_ns;
	double slices, visits, alone; /* launches a second, if there was a verdict */
	uint32_t weight_permille, processes, waits;
	uint32_t slowdown_permille; /* this and what follows the tenant: of a step of the lever, which has of the other
				       numbers id and completed (struct ll_lever_gauge) */
	char tenant[LL_NAME_SIZE];
	double held_launches, held_s, open_launches, open_s;
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
};

/* "0.1.0" as a number that grows with the version. 0: not a version. */
uint64_t ll_version_number(const char *text);

/* Whether all numbers are in their ranges. */
bool ll_limits_are_valid(const struct ll_limits *limits);

/* Whether the text is printable UTF-8 that ends with a NUL within size bytes. */
int ll_message_text_is_valid(const char *text, size_t size);

/* Fills the text, and cuts it between characters. What cannot be shown becomes '?'. */
void ll_message_text_set(char *ret_text, size_t size, const char *text);

/*
 * Checks a packet, and copies it. *ret_message has zeros where the packet is shorter. -EPROTO: it is no message.
 * -ENOTSUP: its kind is not known; the header is copied.
 */
int ll_message_decode(const void *bytes, size_t length, union ll_message *ret_message);

/* Clears the message and sets kind and size. */
void ll_message_init(union ll_message *message, enum ll_message_kind kind);

/* Sends without waiting. Descriptors stay the caller's. -EAGAIN: the socket is full. Other errors: ll_packet_send. */
int ll_message_send(int fd, const union ll_message *message, const int *fds, size_t fd_count);

/*
 * Receives without waiting. Errors are those of ll_message_decode, and -EAGAIN; -EPIPE, -ECONNRESET: the other side is
 * gone; -EMFILE: there is no room for its descriptors, and the message is lost. Descriptors come with a message that
 * was decoded alone, and are the caller's.
 */
int ll_message_receive(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_fd_count);

void ll_message_close_fds(const int *fds, size_t count);

#endif
