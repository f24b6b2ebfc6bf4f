/*
 * seat.h - the seat of a card: who holds the card, and what the hold reports of itself.
 *
 * The seat is an abstract Unix socket that is named after the card and the simulated world (protocol/place.h). The hold
 * binds and listens. The bind is the lock: one process has the seat at a time, whoever its user is, and the seat goes
 * with that process. Abstract names belong to the network namespace: holds in different ones do not know each other.
 *
 * Whoever connects gets one packet, a report, and can change nothing. A thread of the hold answers, which waits for
 * nobody and calls no driver. So a hold whose driver call hangs still answers.
 */
#ifndef LOADLINE_HOLD_SEAT_H
#define LOADLINE_HOLD_SEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/words.h"

struct ll_card;
struct ll_err;
struct ll_seat;
struct ll_seats;

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
	uint64_t taken_age_ns; /* since the hold took the seat */
	uint64_t beat_age_ns;  /* since its governor last said that it goes on, which it does each second */
};

/* Who has a seat. */
struct ll_hold_seat {
	pid_t pid;                    /* in the caller's PID namespace; 0: not seen from there */
	uid_t uid;                    /* in the caller's user namespace */
	bool has_report;              /* false: it does not answer: it is stopped, or is no hold */
	struct ll_hold_report report; /* zeros without one */
};

/* ---- who asks ---- */

/*
 * Asks who holds the card with that UUID. sim_folder: of the simulated world; NULL: the real cards. It waits for a
 * process that does not answer for 0.5 s. -ENOENT: nobody holds the card. Other errors: it cannot be found out.
 */
int ll_seat_ask(const char *uuid, const char *sim_folder, struct ll_hold_seat *ret_seat, struct ll_err *err);

/* The tenant, as rows name it. */
#define LL_HOLD_TENANT "loadline-hold (synthetic load)"

/* ---- the hold ---- */

/*
 * Takes the seats of some cards, and starts the thread that answers. -EBUSY: another process has one ("card 0: pid 123
 * already holds it"); then none is taken. The state is LL_CLAIM_STARTING.
 */
int ll_seats_take(const struct ll_card *const *cards, size_t count, const char *sim_folder, struct ll_seats **ret_seats,
		  struct ll_err *err);

/* Frees them all, and ends the thread. NULL is fine. */
void ll_seats_free(struct ll_seats *seats);

/* Returns the seat of one of the cards. */
struct ll_seat *ll_seats_at(struct ll_seats *seats, size_t index);

/*
 * Change what the seat reports. Any thread may call them. They wait for nothing but a copy of a report. set_target,
 * set_target_watts: each clears the other one's target; metric is cut at 15 bytes, a note at 63.
 */
void ll_seat_set_state(struct ll_seat *seat, enum ll_claim_state state, const char *note);
void ll_seat_set_target(struct ll_seat *seat, const char *metric, unsigned permille);
void ll_seat_set_target_watts(struct ll_seat *seat, const char *metric, unsigned watts);
void ll_seat_set_payload(struct ll_seat *seat, const char *name);
void ll_seat_add_yield(struct ll_seat *seat);

/* The account: what was used since the last call, and the memory of now. It is the beat too. */
void ll_seat_account(struct ll_seat *seat, uint64_t busy_ns, uint64_t energy_mj, uint64_t memory_bytes);

#endif
