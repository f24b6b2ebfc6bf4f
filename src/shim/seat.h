/*
 * seat.h - this program's place on one card: its claim in the card's ledger, and the flow of its launches.
 *
 * A seat is taken when the program first makes or retains a context on the card, and kept to the end of the process. A
 * forked child has no seats until it takes its own. Programs that were not started by `loadline run` have none, and
 * every hook passes straight through: ll_seat_is_governed is one load.
 *
 * When a seat cannot be taken (no ledger, one of another user, all claims taken, garbled settings) and limits were
 * asked for, the program makes no context on that card (ll_seat_refuses). Without limits it runs ungoverned there;
 * `loadline doctor` tells.
 */
#ifndef LOADLINE_SHIM_SEAT_H
#define LOADLINE_SHIM_SEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "ledger/claim.h"
#include "ledger/run_settings.h"
#include "shim/time/flow.h"

/* A part of what a seat's claim is charged: threads have different ones, so that they do not meet in one cache line. */
enum { LL_HELD_PARTS = 16 };
struct ll_held_part {
	_Atomic uint64_t held_bytes; /* may be below zero, by whoever frees what others have: the sum counts */
	_Atomic uint64_t changing;   /* threads that are about to change it */
	char apart[48];
};

struct ll_seat {
	ll_cu_device device; /* CUDA's ordinal */
	char uuid[96];
	struct ll_ledger *ledger;
	struct ll_ledger *first; /* of the tenant's first card, where that is another and the claim has a flow; NULL */
	_Atomic(struct ll_claim *) claim; /* changes where others have cleared it; the former one stays readable */
	struct ll_flow *flow;             /* NULL: launches are not governed */
	struct ll_held_part parts[LL_HELD_PARTS]; /* held.h */
	_Atomic bool is_held;                     /* nobody shall change them, just now */
	struct ll_gate_count count;               /* of a flow that is not the program's only one */
	uint64_t retry_ns;                        /* when to try again to take a claim in place of a lost one */
	uint64_t lost_ns; /* CLOCK_MONOTONIC when it was said that there is none; 0: there is, or nobody was told */
	_Atomic bool is_given_back; /* the claim, until the program asks for the card again */
};

/* What `loadline run` wants of this program; NULL: it did not start it. */
const struct ll_run_settings *ll_seat_settings(void);

/* Whether it did, at the cost of one load: 0 until the first look, then 1 or -1. */
extern _Atomic int ll_seat_answer;
static inline bool ll_seat_is_governed(void)
{
	int answer = atomic_load_explicit(&ll_seat_answer, memory_order_relaxed);
	return __builtin_expect(answer != 0, 1) ? answer > 0 : ll_seat_settings() != NULL;
}

/* The seat on this card, taken if there is none yet; NULL: not governed there. May do driver calls; cuInit was called.
 */
struct ll_seat *ll_seat_take(ll_cu_device device);

/*
 * Whether the program shall make no context on this card: limits were asked for, and there is no claim to hold it to
 * them. The first refusal of a card is said on the standard error stream, with its reason.
 */
bool ll_seat_refuses(ll_cu_device device);

/* A context was refused: where the process has nothing on the card, its claim is given back until it asks again. */
void ll_seat_give_back(struct ll_seat *seat);

/*
 * Takes another claim where the seat's was lost, charged what the process has, whatever the limit says: it is there
 * already. True: the seat has a claim that is good. False: it cannot be had (the ledger is full, or gone), and the
 * program goes on ungoverned; it is tried again after a second at the earliest.
 */
bool ll_seat_retake(struct ll_seat *seat);

/* A context may have ended: one of another card may get its name. */
void ll_seat_forget_contexts(void);

/* The seat of the calling thread's current context; NULL: none. With a flow's context: *ret_context. */
struct ll_seat *ll_seat_current(struct ll_cu_context **ret_context);

/* The same, where the caller knows which one that is. */
struct ll_seat *ll_seat_in(struct ll_cu_context *current);

/* The seat of a context, current or not, if it is the last one that this thread found a seat for; NULL: it is another.
 * Asks the driver for nothing. */
struct ll_seat *ll_seat_known(const struct ll_cu_context *context);

/* A seat that was taken; NULL. */
struct ll_seat *ll_seat_of(ll_cu_device device);

#endif
