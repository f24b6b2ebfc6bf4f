/*
 * device_state.h - what the library knows of one card: the program's claim in the card's ledger, what the program has
 * of the card's memory, and the flow of its launches.
 *
 * The library makes a device state when the program first makes or retains a context on the card, and keeps it to the
 * end of the process. A forked child has none until it makes a context of its own. A program that was not started by
 * `loadline run` has none, and every hook passes straight through: ll_device_state_is_governed is one load.
 *
 * A device state cannot be made where there is no ledger, where the ledger is another user's, where all claims are
 * taken, and where the settings are garbled. If limits were asked for, the program then makes no context on that card
 * (ll_device_state_refuses). Without limits it runs ungoverned there; `loadline doctor` tells.
 */
#ifndef LOADLINE_SHIM_DEVICE_STATE_H
#define LOADLINE_SHIM_DEVICE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "ledger/port.h"
#include "shim/time/flow.h"

/* A part of what the claim is charged. Threads change different parts, so that they do not share a cache line. */
enum { LL_CHARGE_COUNTER_PARTS = 16 };
struct ll_charge_counter_part {
	_Atomic uint64_t charged_bytes; /* may be below zero, by whoever frees what others have: the sum counts */
	_Atomic uint64_t changing;      /* threads that are about to change it */
	char apart[48];
};

struct ll_device_state {
	ll_cu_device device; /* CUDA's ordinal */
	char uuid[96];
	struct ll_ledger *ledger;
	struct ll_ledger *first; /* of the tenant's first card, where that is another and the claim has a flow; NULL */
	_Atomic(struct ll_claim *) claim; /* changes where others have cleared it; the former one stays readable */
	struct ll_flow *flow;             /* NULL: launches are not governed */
	struct ll_charge_counter_part parts[LL_CHARGE_COUNTER_PARTS]; /* charge_counter.h */
	_Atomic bool is_frozen;                                       /* nobody shall change the parts now */
	struct ll_gate_count count;                                   /* of a flow that is not the program's only one */
	uint64_t retry_ns; /* when to try again to take a claim in place of a lost one */
	uint64_t lost_ns;  /* CLOCK_MONOTONIC when it was said that there is none; 0: there is, or nobody was told */
	_Atomic bool is_given_back; /* the claim, until the program asks for the card again */
};

/* What `loadline run` wants of this program; NULL: it did not start it. */
const struct ll_run_settings *ll_device_state_settings(void);

/* Whether it did, at the cost of one load: 0 until the first look, then 1 or -1. */
extern _Atomic int ll_device_state_answer;
static inline bool ll_device_state_is_governed(void)
{
	int answer = atomic_load_explicit(&ll_device_state_answer, memory_order_relaxed);
	return __builtin_expect(answer != 0, 1) ? answer > 0 : ll_device_state_settings() != NULL;
}

/* Returns the state of this card, and makes it if there is none. NULL: the program is not governed there. May call the
 * driver; the program has called cuInit. */
struct ll_device_state *ll_device_state_take(ll_cu_device device);

/*
 * Whether the program shall make no context on this card: limits were asked for, and there is no claim to hold the
 * program to them. The first refusal of a card is said on the standard error stream, with its reason.
 */
bool ll_device_state_refuses(ll_cu_device device);

/* A context was refused. If the process has nothing on the card, its claim is given back until the process asks again.
 */
void ll_device_state_give_back(struct ll_device_state *dev);

/*
 * Takes another claim if the state's claim was lost. The new claim is charged what the process has, whatever the limit
 * says: the memory is there already. True: the state has a claim that is good. False: no claim can be had (the ledger
 * is full, or gone), and the program goes on ungoverned; the library tries again after a second at the earliest.
 */
bool ll_device_state_retake(struct ll_device_state *dev);

/* A context may have ended. A context of another card may get its handle. */
void ll_device_state_forget_contexts(void);

/* The state of the card of the calling thread's current context; NULL: no context is current, or it is not governed.
 * *ret_context is that context, if the state has a flow. */
struct ll_device_state *ll_device_state_current(struct ll_cu_context **ret_context);

/* The same, for a caller who knows the current context. */
struct ll_device_state *ll_device_state_in(struct ll_cu_context *current);

/* The state of this context's card, if it is the context that this thread asked for last; NULL: it is another one. The
 * context need not be current. Does not call the driver. */
struct ll_device_state *ll_device_state_known(const struct ll_cu_context *context);

/* The state of this card, if it was made before; NULL. */
struct ll_device_state *ll_device_state_of(ll_cu_device device);

#endif
