/*
 * hold_socket.h - the socket by which a hold locks its card and reports on itself.
 *
 * A hold binds an abstract Unix socket whose name is made of the card and the simulated world (protocol/place.h), and
 * listens on it. The bind is the lock of the card: one process has the socket at a time, whoever its user is. The
 * kernel frees the name when that process ends. Abstract names belong to the network namespace: holds in different
 * network namespaces do not know each other.
 *
 * A process that connects gets one packet, the report of the hold. It can change nothing. A thread of the hold sends
 * the packets. This thread waits for nobody and calls no driver, so a hold whose driver call hangs still sends them.
 */
#ifndef LOADLINE_HOLD_HOLD_SOCKET_H
#define LOADLINE_HOLD_HOLD_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/words.h"

struct ll_card;
struct ll_err;
struct ll_hold_socket;
struct ll_hold_sockets;

/* What a hold says of itself. Part of a packet: new fields go to the end, and no field changes. */
struct ll_hold_report {
	uint32_t state;                         /* enum ll_claim_state */
	uint32_t target_permille, target_watts; /* one of them is 0 */
	uint32_t unused;
	char metric[16];  /* of the target: "util", "power", ... */
	char payload[16]; /* empty before the first context */
	char note[64];    /* one phrase on the state, for people; may be empty */
	uint64_t memory_bytes;
	uint64_t gpu_time_ns, synthetic_busy_ns, energy_mj, yields;
	uint64_t taken_age_ns; /* since the hold bound its socket */
	uint64_t beat_age_ns;  /* since the last beat of its governor; it beats each second */
};

/* The process that holds a card. */
struct ll_hold_owner {
	pid_t pid;                    /* in the caller's PID namespace; 0: not seen from there */
	uid_t uid;                    /* in the caller's user namespace */
	bool has_report;              /* false: it sends no report, because it is stopped or is no hold */
	struct ll_hold_report report; /* zeros without one */
};

/* ---- for other programs ---- */

/*
 * Finds the process that holds the card with that UUID, and reads its report. sim_folder: the folder of the simulated
 * world; NULL: the real cards. Waits at most 0.5 s for the report. -ENOENT: nobody holds the card. Other errors: the
 * question has no answer.
 */
int ll_hold_query(const char *uuid, const char *sim_folder, struct ll_hold_owner *ret_owner, struct ll_err *err);

/* The tenant, as rows name it. */
#define LL_HOLD_TENANT "loadline-hold (synthetic load)"

/* ---- the hold ---- */

/*
 * Takes the sockets of some cards, and starts the thread that answers. -EBUSY: another process has one ("card 0: pid
 * 123 already holds it"); then none is taken. The state is LL_CLAIM_STARTING.
 */
int ll_hold_sockets_bind(const struct ll_card *const *cards, size_t count, const char *sim_folder,
			 struct ll_hold_sockets **ret_sockets, struct ll_err *err);

/* Closes all sockets and ends the thread. sockets may be NULL. */
void ll_hold_sockets_free(struct ll_hold_sockets *sockets);

/* Returns the socket of one of the cards. */
struct ll_hold_socket *ll_hold_sockets_at(struct ll_hold_sockets *sockets, size_t index);

/*
 * Change the report of the socket. Any thread may call them. They wait only while another thread copies a report.
 * set_target and set_target_watts: each clears the target of the other; metric is cut at 15 bytes, a note at 63.
 */
void ll_hold_socket_set_state(struct ll_hold_socket *hold_socket, enum ll_claim_state state, const char *note);
void ll_hold_socket_set_target(struct ll_hold_socket *hold_socket, const char *metric, unsigned permille);
void ll_hold_socket_set_target_watts(struct ll_hold_socket *hold_socket, const char *metric, unsigned watts);
void ll_hold_socket_set_payload(struct ll_hold_socket *hold_socket, const char *name);
void ll_hold_socket_add_yield(struct ll_hold_socket *hold_socket);

/* Adds the use since the last call to the report, sets its memory, and counts as a beat of the governor. */
void ll_hold_socket_account(struct ll_hold_socket *hold_socket, uint64_t busy_ns, uint64_t energy_mj,
			    uint64_t memory_bytes);

#endif
