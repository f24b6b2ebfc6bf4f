/*
 * hold_socket.h - the socket by which a hold reports on itself, and by which another finds that the card is held.
 *
 * A hold listens on an abstract Unix socket of its own for each card: its name is made of the card, the simulated
 * world, and a random number (protocol/place.h). So nobody can take a hold's name from it. The kernel frees the name
 * when the process ends. Who looks for a card's hold finds all such names in /proc/net/unix, and asks those that may be
 * holds. Abstract names belong to the network namespace: holds in different network namespaces do not know each other.
 *
 * Any user may bind such a name, and answer as a hold does. So a process is believed only if it is root's or the
 * asker's own, or NVML lists it, or a child of it, on the card. Where NVML cannot tell, its answer must do. Who is not
 * believed hinders nobody, and is named: he has a name and proves nothing. So a hold of another user that has no
 * context yet, or has given it back, keeps no other from the card; it sees the other's kernels and waits.
 *
 * A hold first listens, then notes the time, then looks. Of two that start at once, the later one so sees the earlier
 * one, whose time is earlier, and gives up.
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
	uint64_t taken_age_ns; /* since the hold took the card */
	uint64_t beat_age_ns;  /* since the last beat of its governor; it beats each second */
	uint64_t taken_ns;     /* ll_now_ns */
};

/* The process that holds a card. */
struct ll_hold_owner {
	pid_t pid;                    /* in the caller's PID namespace; 0: not seen from there */
	uid_t uid;                    /* in the caller's user namespace */
	bool has_report;              /* false: it sends no report, because it is stopped */
	struct ll_hold_report report; /* zeros without one */
};

/* A process that has a name of the card's holds, and is not believed. */
struct ll_hold_sitter {
	enum ll_hold_sitter_kind {
		LL_HOLD_NO_SITTER,
		LL_HOLD_ACCEPTS_NOBODY,
		LL_HOLD_HAS_NO_CONTEXT,
		LL_HOLD_DOES_NOT_ANSWER,
	} kind;
	pid_t pid; /* of the last two */
	uid_t uid;
};

/* ---- for other programs ---- */

/*
 * Finds the process that holds the card, of several the first one, and reads its report. sim_folder: the folder of the
 * simulated world; NULL: the real cards. Waits at most 0.5 s for the report. ret_sitter may be NULL; it is filled also
 * with -ENOENT, which says that nobody holds the card. Other errors: the question has no answer.
 */
int ll_hold_query(const struct ll_card *card, const char *sim_folder, struct ll_hold_owner *ret_owner,
		  struct ll_hold_sitter *ret_sitter, struct ll_err *err);

/* The tenant, as rows name it. */
#define LL_HOLD_TENANT "loadline-hold (synthetic load)"

/* ---- the hold ---- */

/*
 * Takes some cards, and starts the thread that answers. -EBUSY: another process holds one ("card 0: pid 123 already
 * holds it"); then none is taken. The state is LL_CLAIM_STARTING.
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
