/*
 * message.h - the messages between loadlined, the monitors of jobs, and commands.
 *
 * A message is one packet of a SOCK_SEQPACKET socket, a structure of fixed size, in the machine's byte order. Versions
 * of loadline that differ talk to each other by these rules:
 *
 *   - A kind keeps its number and its fields for ever. New fields are added at the end.
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

#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"

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
	LL_MESSAGE_JOB = 4,     /* a monitor registers its job; descriptors: of the job's first process, the lifeline */
	LL_MESSAGE_ACCEPTED = 5,  /* its answer */
	LL_MESSAGE_JOB_ENDED = 6, /* the monitor saw the end of the job's process tree; no answer */
	LL_MESSAGE_LIST = 7,      /* asks for the books: LL_MESSAGE_JOB_ROW and ..._PROCESS_ROW, then ..._LIST_END */
	LL_MESSAGE_JOB_ROW = 8,
	LL_MESSAGE_PROCESS_ROW = 9, /* follows the row of its job */
	LL_MESSAGE_LIST_END = 10,
	LL_MESSAGE_HANDOVER = 11,    /* a newer version wants to serve */
	LL_MESSAGE_HANDED_OVER = 12, /* its answer, with the listening socket. The old daemon ends */
	LL_MESSAGE_TENANT_ROW = 13,  /* follows the rows of its jobs */
};

enum ll_message_role { LL_ROLE_MONITOR = 1, LL_ROLE_COMMAND = 2 };

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

enum { LL_VERSION_SIZE = 32, LL_NAME_SIZE = 64, LL_COMMAND_SIZE = 64, LL_CGROUP_SIZE = 256, LL_REASON_SIZE = 120 };

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
	uint32_t jobs, tenants, connections, open_files_limit;
	uint64_t bad_messages; /* connections that it ended because of what they sent */
};

struct ll_message_refused {
	struct ll_message_header header;
	int32_t code; /* negative errno */
	uint32_t unused;
	char reason[LL_REASON_SIZE];
};

/* Frozen, as it is part of two messages: new fields go to the end of those. */
struct ll_job_facts {
	uint64_t token[2]; /* random, not 0; token[0] is the id of the tenant's rows in the ledgers */
	uint64_t started_wall_ns;
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
	uint64_t number, tenant_number;
	struct ll_job_facts job; /* pid, uid: as the daemon sees them */
	uint32_t monitor_pid;    /* as the daemon sees it; 0: none */
	uint32_t processes;
};

enum ll_process_role { LL_PROCESS_FIRST = 1 /* what `run` became */ };

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
};

/* "0.1.0" as a number that grows with the version. 0: not a version. */
uint64_t ll_version_number(const char *text);

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
