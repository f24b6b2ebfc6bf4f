/*
 * flow_state.h - the inside of a flow, for flow.c and its agent.
 */
#ifndef LOADLINE_SHIM_TIME_FLOW_STATE_H
#define LOADLINE_SHIM_TIME_FLOW_STATE_H

#include <pthread.h>

#include "control/slices.h"
#include "shim/time/advance.h"
#include "shim/time/captures.h"
#include "shim/time/card_gate.h"
#include "shim/time/flow.h"
#include "shim/time/timing_lock.h"

struct ll_flow_context {
	struct ll_cu_context *handle;
	struct ll_timing *timing;
	struct ll_card_gate gate;
	unsigned users; /* threads that go on with it where timing events let the lock go */
	bool is_gone;   /* no longer in the list; the last user frees it */
	struct ll_flow_context *next;
};

/* What the pace is told from: since the last time. */
struct ll_flow_pace {
	_Atomic uint64_t launches; /* counted without the lock too; a few may be lost */
	uint64_t waits_before, since_ns;
	uint64_t work_ns, shared_ns; /* how long it had work on the card, and others too */
	uint64_t seen_ns;            /* up to when that is known */
	uint64_t launch_ns;          /* GPU time of a launch, from when others mostly had none; 0: not known */
	bool is_ahead;               /* as was told last */
};

struct ll_flow {
	const struct ll_flow_owner *owner;
	_Atomic(struct ll_claim *)
	    claim;                     /* changed under the lock (agent.h); read without, for wake counts and gates */
	const struct ll_ledger *first; /* of the tenant's first card, where that is another; NULL: it is not */
	uint64_t tenant_id;            /* in it */
	struct ll_timing_lock
	    lock; /* guards all below; never held while waiting, nor while a timing event is recorded */
	struct ll_flow_context *contexts;
	struct ll_captures captures;
	struct ll_turn turn;
	struct ll_turn_look look; /* of the last tick */
	struct ll_slices slices;
	uint64_t progress_ns; /* CLOCK_MONOTONIC when something of the queue was last known to have ended, or it was
				 short, or a launch passed */
	uint64_t charged_ns;  /* up to when the card's work for us is charged */
	uint64_t ticked_ns;
	uint64_t visit_ns;             /* up to when the visit that goes on is charged; 0: it is not our visit */
	uint64_t visits_to_ns;         /* up to when time is charged by visits, and not by timing events */
	struct ll_timing_queue queued; /* at most: what was counted since the last look may have ended */
	struct ll_advance advance;
	struct ll_flow_pace pace;
	uint64_t idle_since_ns;      /* the card has nothing of ours since then; 0: it has */
	uint64_t recorded_ns;        /* when an open gate last asked for a timing event */
	unsigned waiting;            /* threads in ll_flow_enter that wait */
	unsigned launching;          /* threads between enter and leave */
	bool is_wanting;             /* said so in the ledger */
	struct ll_gang gang;         /* what another card says, where first is not NULL */
	uint32_t awaited;            /* launches here for which another card of the tenant may wait */
	bool is_in_debt;             /* the cap's account must fill first */
	bool is_blind;               /* timing events do not work: nothing is timed, the gate stays shut */
	bool was_blind;              /* at the last look of ll_flow_tend_blind */
	uint64_t blind_since_ns;     /* when it was found out last */
	uint64_t blind_wait_ns;      /* from then on, before the events are made anew */
	bool is_lost;                /* the claim was cleared by others, and no other was to be had yet */
	_Atomic bool is_ending;      /* nobody waits any more, and no more timing events are made */
	struct ll_gate_count *count; /* of launches through the open gate */
	unsigned sliced_by;          /* others, when the card was last shared by slices: at sliced_ns */
	uint64_t sliced_ns;
	uint64_t dice;                      /* for how many the gate stays open in slices */
	struct ll_cu_context *last_context; /* of the last timing event; NULL: none yet */
	struct ll_timing_stream last_stream;

	uint64_t max_kernel_ns; /* 0: none */
	bool kills_at_max_kernel;
	uint64_t watched_since_ns;  /* CLOCK_MONOTONIC, of the launches that were the longest at the last look */
	uint64_t watched_others_ns; /* of slices, when they were first seen */
	char note[64];              /* the claim's, as we wrote it */

	pthread_t agent;
	bool has_agent;
	_Atomic bool has_agent_ended; /* it comes back from where it is made to end */
};

/* Charges the tenant for what the card did for this program in that stretch. of: the flow. */
void ll_flow_charge(void *of, const struct ll_timing_stretch *stretch);

/* Where events fail: charges, and has them made anew. For the agent, before each tick. */
void ll_flow_tend_blind(struct ll_flow *flow, uint64_t now_ns);

/* Launches through the open gate are known by number alone; they are taken to be where the last timing event was made.
 */
void ll_flow_note_untimed(struct ll_flow *flow);

/* The context's timing events; find: NULL where there are none; get: made where there are none, NULL: no memory, or
 * handle is NULL.
 */
struct ll_flow_context *ll_flow_find_context(struct ll_flow *flow, const struct ll_cu_context *handle);
struct ll_flow_context *ll_flow_get_context(struct ll_flow *flow, struct ll_cu_context *handle);

/* Around what lets the lock go: the context may end meanwhile, and is freed by its last user. NULL is fine. */
void ll_flow_use(struct ll_flow_context *context);
void ll_flow_leave_unused(struct ll_flow_context *context);

/* Visits each context for something that lets the lock go: it is in use meanwhile. Where one ends meanwhile those
 * behind it may have ended too, and are left to the next tick. Not to be left by break. */
struct ll_flow_context *ll_flow_first_used(struct ll_flow *flow);
struct ll_flow_context *ll_flow_next_used(struct ll_flow_context *context);

#define LL_FLOW_EACH_USED(flow, context)                                                                               \
	for (struct ll_flow_context *context = ll_flow_first_used(flow); (context);                                    \
	     context = ll_flow_next_used(context))

void ll_flow_free_unused(struct ll_flow_context *context);

/* Looks whose turn it is, here and on the tenant's other cards: flow_gang.c. queued and turn.queued_launches are as
 * they are now. Under the lock, as all below. */
void ll_flow_look(struct ll_flow *flow, uint64_t now_ns, bool is_idle);

/* After that: tells the timing events whether others share the card, and whether by slices. */
void ll_flow_tell_others(struct ll_flow *flow, uint64_t now_ns);

/* As many launches as are good for LL_FLOW_OPEN_NS of work may pass an open gate untimed; in slices fewer, as what
 * they take is told by those that are timed. */
void ll_flow_set_open_limit(struct ll_flow *flow, const struct ll_timing *timing);

/* Whether a launch may go though it is not our turn: what another card has begun may wait for it. Then it is counted.
 */
bool ll_flow_passes_awaited(struct ll_flow *flow);

/* Between two looks of the agent: while somebody waits for what the card does; while what we launched waits on the
 * card, and whoever gives us the turn wakes us. */
#define LL_FLOW_POLL_NS (100 * LL_NS_PER_US)
#define LL_FLOW_HELD_NS (5 * LL_NS_PER_MS)

/* Says that we have launches to make, and wakes the agent, which sleeps while nothing is wanted. */
void ll_flow_want(struct ll_flow *flow, uint64_t now_ns);

/*
 * Before a launch: has the stream wait for its tenant's gate on the card (ledger/port.h), where it must. The
 * context is current. False: it cannot, or takes no part: the launch waits for its turn here. The lock is let go
 * meanwhile, and the host may wait for room in the queue.
 */
bool ll_flow_waits_on_card(struct ll_flow *flow, struct ll_flow_context *context, struct ll_timing_stream stream);

/* Whether all that we have launched waits on the card: then nothing is to be found there. Nor is the driver called: a
 * thread of the program that frees memory waits in it until its streams go on, and whoever asks for an event waits
 * behind that thread. */
bool ll_flow_is_held_back(const struct ll_flow *flow);

/*
 * A full queue of which nothing ends for far longer than it should take: it may wait for what this very launch would
 * bring (a value, a host function). One more does not hurt.
 */
bool ll_flow_passes_stalled_queue(struct ll_flow *flow, uint64_t now_ns);

/* Whether a launch needs no new wait before it. context: NULL is fine. */
bool ll_flow_may_pass_unheld(const struct ll_flow *flow, const struct ll_flow_context *context,
			     struct ll_timing_stream stream);

/* The claim is not ours any more: nothing is left waiting on the card. */
void ll_flow_leave_gates(struct ll_flow *flow);

/* After a look: charges what went by of our visit. */
void ll_flow_charge_visit(struct ll_flow *flow, uint64_t now_ns);

/* So many launches were made. Any thread. */
void ll_flow_note_launches(struct ll_flow *flow, uint64_t launches);

/* Tells the other tenants how the program launches, where enough launches were made since the last time: flow_pace.c.
 */
void ll_flow_tell_pace(struct ll_flow *flow, uint64_t now_ns);

/* Timing events what was left untimed, in the agent's thread. Under the lock. */
void ll_flow_close_tails(struct ll_flow *flow);

/* Takes the flow's lock, and takes back prepaid launches that did not come (advance.h). */
void ll_flow_lock(struct ll_flow *flow);

/* One pass over what has ended and whose turn it is; returns when the next one is due. Under the lock. */
uint64_t ll_flow_tick(struct ll_flow *flow, uint64_t now_ns);

#endif
