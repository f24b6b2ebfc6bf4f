/*
 * message_queue.h - the messages about the queue for the cards of the machine (message.h), which the system's loadlined
 * keeps if a configuration is in force and its sensor reports the cards (daemon/queue/admission.h).
 *
 * A command sends ADMIT for the job that it will start. Replies: QUEUED, as often as something changes, then ADMITTED
 * or REFUSED (-ENOENT: there is no queue; -EACCES: the configuration does not allow the job; -EAGAIN: LL_ADMIT_NO_WAIT;
 * -EBUSY: ask again, the sensor has not reported yet; -ECANCELED: wait_ns are over, or it was canceled). The end of the
 * connection before ADMITTED cancels. After ADMITTED the job registers within 10 s, else its place is free again.
 *
 * QUEUE requests the queue: QUEUE_ROW and QUEUE_WINDOW messages, then QUEUE_END; or REFUSED (-ENOENT). QUEUE_ACT
 * changes the queue; reply: ACCEPTED or REFUSED. SIGNAL goes to a job's monitor: the job's first process shall get the
 * signal; it has no reply.
 *
 * Moments are seconds since 1970, lengths of time are nanoseconds. In both 0 means that there is none.
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_QUEUE_H
#define LOADLINE_PROTOCOL_MESSAGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/message_header.h"

enum {
	LL_QUEUE_CARDS_OF_JOB = 16, /* the most cards that a job of the queue has */
};

enum ll_admit_flag {
	LL_ADMIT_NO_WAIT = 1,      /* a place now, or none */
	LL_ADMIT_HAS_CARDS = 2,    /* card_mask and slice say which cards it may have */
	LL_ADMIT_AFTER_OK = 4,     /* `after` must be of the same user, and end with status 0 */
	LL_ADMIT_TELLS_STATUS = 8, /* JOB_STATUS will follow the end of its first process */
	LL_ADMIT_HAS_PROJECT = 64, /* it names a project when it registers */
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
 * process is. Reply: ACCEPTED, or REFUSED with -ESRCH: the user has no such job. */
struct ll_message_job_status {
	struct ll_message_header header;
	uint64_t job;    /* token[0] */
	uint32_t status; /* as waitpid() gives it */
	uint32_t unused;
};

bool ll_admit_is_valid(const struct ll_message_admit *admit);
bool ll_admitted_is_valid(const struct ll_message_admitted *admitted);
bool ll_queued_is_valid(const struct ll_message_queued *queued);
bool ll_queue_row_is_valid(const struct ll_message_queue_row *row);

#endif
