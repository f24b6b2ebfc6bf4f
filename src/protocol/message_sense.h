/*
 * message_sense.h - the messages about cards and the processes on them: from the sensor to loadlined, and from
 * loadlined to a command (message.h, daemon/machine/machine.h).
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_SENSE_H
#define LOADLINE_PROTOCOL_MESSAGE_SENSE_H

#include <stdint.h>

#include "protocol/message_header.h"

enum ll_sense_card_flag {
	LL_SENSE_IS_LOST = 1,    /* it does not answer */
	LL_SENSE_HAS_SLICES = 2, /* in MIG mode: it runs nothing itself */
	LL_SENSE_IS_BUSY = 4,    /* the newest sample of utilisation has work */
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
	uint64_t silent_ns;          /* of SENSED: since the sensor's last message; UINT64_MAX: none has come */
	char reason[LL_REASON_SIZE]; /* why there are no cards: no driver, … Empty: there are some */
};

#endif
