/*
 * device_state.h - what the library knows of one card: the program's claim there, what the program has
 * of the card's memory, and the flow of its launches.
 *
 * The library makes a device state when the program first makes or retains a context on the card, and keeps it to the
 * end of the process. A forked child has none until it makes a context of its own. A program that `loadline run` did
 * not start has none, and every hook passes straight through: ll_device_state_is_governed is one load.
 *
 * A device state cannot be made if loadlined does not answer, does not know the job, or has no claim left, or if the
 * settings are garbled. If the user asked for limits, the program then makes no context on that card
 * (ll_device_state_refuses). Without limits it runs ungoverned there, and `loadline doctor` reports it.
 */
#ifndef LOADLINE_SHIM_DEVICE_STATE_H
#define LOADLINE_SHIM_DEVICE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi/cuda.h"
#include "shim/link/port.h"
#include "shim/time/flow.h"

/*
 * What the process has of the card's memory is the sum of several counters. Threads change different counters, so that
 * they do not share a cache line. If the claim was taken away, another claim is charged the sum. Meanwhile every change
 * waits: for some 10 µs, and for 0.2 s at most.
 */
enum { LL_CHARGE_COUNTERS = 16 };
struct ll_charge_counter {
	_Atomic uint64_t charged_bytes; /* may be below zero, if a thread frees what others allocated: the sum counts */
	_Atomic uint64_t changing;      /* threads that are about to change it */
	char apart[48];
};

struct ll_device_state {
	ll_cu_device device; /* CUDA's ordinal */
	char uuid[96];
	struct ll_port *port;
	_Atomic(struct ll_claim *) claim;      /* changes if it was taken away; the former one stays readable */
	struct ll_flow *flow;                  /* NULL: launches are not governed */
	struct ll_card_time_thread *card_time; /* slices/card_time.h. NULL: it could not be started */
	struct ll_charge_counter counters[LL_CHARGE_COUNTERS];
	/* of allocations that can be moved (memory/backing.c) */
	_Atomic uint64_t evictable_bytes; /* charged for them */
	_Atomic uint32_t exported_count;  /* those of which the program has a DMA buffer */
	_Atomic uint64_t peers;           /* cards that may use them too: a bit for each ordinal */
	_Atomic bool is_frozen;           /* no thread may change the counters now */
	struct ll_gate_count count;       /* of the open gate's launches, if the program has several flows */
	uint64_t retry_ns;                /* when to try again to take a claim in place of a lost one */
	uint64_t lost_ns; /* CLOCK_MONOTONIC when the library said that there is no claim; 0: there is one, or nothing
			     was said */
	_Atomic uint64_t settled_ns; /* the last death after which memory that others hold was looked at (exported.c) */
	uint64_t shared_claim;       /* token of the claim under which this process shares memory (exported.c) */
	_Atomic bool is_given_back;  /* the claim was given back, until the program asks for the card again */
};

/* Returns the settings of the program's tenant; NULL: it has none. They are looked for once in a process. */
const struct ll_run_settings *ll_device_state_settings(void);

/* Whether the program has a tenant, at the cost of one load. ll_device_state_answer is 0 until the first
 * look, then 1 or -1. */
extern _Atomic int ll_device_state_answer;
static inline bool ll_device_state_is_governed(void)
{
	int answer = atomic_load_explicit(&ll_device_state_answer, memory_order_relaxed);
	return __builtin_expect(answer != 0, 1) ? answer > 0 : ll_device_state_settings() != NULL;
}

/* The program makes a context. If it has no tenant, says once that it is not governed. A forked child does not say it
 * again. */
void ll_device_state_say_ungoverned(void);

/* Returns the state of this card, and makes it if there is none. NULL: the program is not governed there. May call the
 * driver; the program has called cuInit. */
struct ll_device_state *ll_device_state_get(ll_cu_device device);

/*
 * Whether the program may make no context on this card, because limits were asked for and there is no claim to hold the
 * program to them. The library says the first refusal of a card on the standard error stream, with its reason.
 */
bool ll_device_state_refuses(ll_cu_device device);

/* Returns the driver's error if there is no state of this card because the driver did not say which card it is; else
 * LL_CUDA_SUCCESS. To be asked after ll_device_state_get. */
ll_cu_result ll_device_state_answer_of(ll_cu_device device);

/* A context was refused. If the process has nothing on the card, gives its claim back until the process asks again. */
void ll_device_state_give_back(struct ll_device_state *dev);

/*
 * Takes another claim if the state's claim was lost. The new claim is charged what the process has, whatever the limit
 * says: the memory is there already. True: the state has a claim that is good. False: no claim can be had (loadlined
 * refuses, or is gone), and the program goes on ungoverned; the library tries again after a second at the earliest.
 */
bool ll_device_state_retake(struct ll_device_state *dev);

/* ---- memory ---- */

/*
 * Reserves bytes for this process. 0; -ENOMEM: they would pass the limit, or loadlined would have to be asked and does
 * not answer, or the claim is lost, there is no other, and the tenant has a memory limit; -ESTALE: the claim is lost
 * and the tenant has no memory limit. Nothing is charged on an error.
 */
int ll_device_state_reserve(struct ll_device_state *dev, uint64_t bytes);

/* Charges bytes that the process has already, whatever the limit says. */
void ll_device_state_charge(struct ll_device_state *dev, uint64_t bytes);

/* Gives bytes back that were reserved or charged. */
void ll_device_state_release(struct ll_device_state *dev, uint64_t bytes);

/*
 * Lets the tenant's other processes be asked for what their memory pools keep in reserve. Returns when all have
 * answered, after some 50 ms at most. False: there is no room for so many bytes all the same. The caller holds no lock
 * of the library, because those processes may be asking this one.
 */
bool ll_device_state_request_siblings(struct ll_device_state *dev, uint64_t bytes);

/*
 * Gives up what this process keeps in reserve, as the driver itself does when the card is full. True: the charge has
 * become less. The flow's agent asks for it too. give_up does it, if one was set: memory/pools.c sets its own when the
 * program first uses a pool. give_up may be called on any thread. A forked child keeps it.
 */
bool ll_device_state_give_up_reserve(struct ll_device_state *dev);
void ll_device_state_set_reserve(bool (*give_up)(struct ll_device_state *dev));

/* Sets what the flow's agent does with each beat, about once a second, and when the tenant's other processes ask for
 * reserves. A forked child keeps it. */
void ll_device_state_set_tend(void (*tend)(struct ll_device_state *dev));

/* ---- contexts ---- */

/* A context may have ended. Later a context of another card may get its handle. */
void ll_device_state_forget_contexts(void);

/* Gives the state of the card of the calling thread's current context; NULL: no context is current, or it is not
 * governed. *ret_context is that context, if the state has a flow. Returns the driver's answer if it does not say which
 * context or card that is: what the thread does then cannot be charged to anybody. */
ll_cu_result ll_device_state_find(struct ll_cu_context **ret_context, struct ll_device_state **ret_dev);

/* The same, for a caller who knows the current context. */
ll_cu_result ll_device_state_find_in(struct ll_cu_context *current, struct ll_device_state **ret_dev);

/* The same, for a caller to whom a driver that does not say is as no context. */
struct ll_device_state *ll_device_state_current(struct ll_cu_context **ret_context);

/* The state of this context's card, if it is the context that this thread asked for last; NULL: it is another one. The
 * context need not be current. Does not call the driver. */
struct ll_device_state *ll_device_state_known(const struct ll_cu_context *context);

/* The state of this card, if it was made before; NULL. */
struct ll_device_state *ll_device_state_of(ll_cu_device device);

#endif
