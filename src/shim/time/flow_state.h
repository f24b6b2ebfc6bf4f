/*
 * flow_state.h - the inside of a flow, for the files flow*.c, agent.c and watch.c.
 *
 *     flow_contexts.c   the contexts in which launches are timed; charging
 *     flow_others.c     what the flow learns of other tenants and other cards, and what it tells them
 *     flow_tick.c       one look at the card: what has ended, whose turn it is
 *     flow_hold.c       launches that wait on the card
 *     watch.c           kernels that never end
 *     agent.c           the thread that looks while no launch comes
 *     flow.c            what hooks call (flow.h)
 *
 * Each of them calls only files above it in this list, and flow.c also the agent. Every function here needs the flow's
 * lock, unless it says that it does not.
 */
#ifndef LOADLINE_SHIM_TIME_FLOW_STATE_H
#define LOADLINE_SHIM_TIME_FLOW_STATE_H

#include <pthread.h>

#include "control/slices.h"
#include "shim/time/captures.h"
#include "shim/time/card_gate.h"
#include "shim/time/flow.h"
#include "shim/time/prepaid.h"
#include "shim/time/timing_lock.h"

struct ll_flow_context {
	struct ll_cu_context *handle;
	struct ll_timing *timing;
	struct ll_card_gate gate;
	unsigned users; /* threads that use it while the lock is let go */
	bool is_gone;   /* no longer in the list; the last user frees it */
	struct ll_flow_context *next;
};

/* What the launch_mode is computed from: facts since it was computed last. */
struct ll_flow_launch_mode {
	_Atomic uint64_t launches, all_launches; /* counted without the lock too; a few may be lost */
	uint64_t work_ns;                        /* the card's work for this program, as far as it is timed */
	uint64_t waits_before, since_ns;
	bool is_ahead; /* the last launch_mode was LL_LAUNCH_MODE_ASYNC */
};

struct ll_flow {
	const struct ll_flow_owner *owner;
	_Atomic(struct ll_claim *)
	    claim;                  /* changed under the lock (agent.h); read without it for wake counts and gates */
	bool has_first;             /* the tenant works on several cards, and this is not the first one */
	struct ll_timing_lock lock; /* guards all below; not held while waiting, nor while a timing event is recorded */
	struct ll_flow_context *contexts;
	struct ll_captures captures;
	_Atomic unsigned context_waits; /* threads that wait for a whole context: no capture begins */
	struct ll_turn turn;
	struct ll_turn_look look; /* of the last tick */
	struct ll_slices slices;
	uint64_t progress_ns;  /* CLOCK_MONOTONIC when the queue was last known to get shorter or to be short, or when a
				  launch passed a stalled queue */
	uint64_t charged_ns;   /* up to when the card's work for this program is charged */
	uint64_t ticked_ns;    /* of the last tick */
	uint64_t visit_ns;     /* up to when the present visit is charged; 0: this program has no visit */
	uint64_t visits_to_ns; /* up to when time was charged by visits, and not by timing events */
	struct ll_timing_queue queued; /* at most: what was counted since the last look may have ended */
	struct ll_prepaid prepaid;
	struct ll_flow_launch_mode launch_mode;
	uint64_t idle_since_ns;      /* since when the card has no work of this program; 0: it has some */
	uint64_t recorded_ns;        /* when an open gate last asked for a timing event */
	unsigned waiting;            /* threads in ll_flow_enter that wait */
	unsigned launching;          /* threads past their wait in ll_flow_enter, until ll_flow_leave */
	bool is_wanting;             /* loadlined was told that the program wants the card */
	struct ll_gang gang;         /* what happens on the first card, if this one follows it */
	uint32_t awaited;            /* launches here for which another card of the tenant may wait */
	bool is_in_debt;             /* launches wait until the cap's account has filled */
	bool is_blind;               /* timing events fail: nothing is timed, the gate stays shut */
	bool was_blind;              /* is_blind at the agent's last look */
	uint64_t blind_since_ns;     /* when the events failed last */
	uint64_t blind_wait_ns;      /* how long after that the events are made anew */
	bool is_lost;                /* other processes cleared the claim, and there is no other one yet */
	_Atomic bool is_ending;      /* no launch waits any more, and no timing event is recorded */
	struct ll_gate_count *count; /* of launches through the open gate */
	uint64_t to_sample;          /* so many of them pass before the next sample for time slices; 0: not drawn yet */
	unsigned sliced_by;          /* programs that shared the card by slices, as seen at sliced_ns */
	uint64_t sliced_ns;
	uint64_t dice;                      /* state of the random numbers that vary the open gate's limit */
	struct ll_cu_context *last_context; /* of the last timing event; NULL: none yet */
	struct ll_timing_stream last_stream;

	uint64_t max_kernel_ns; /* 0: none */
	bool kills_at_max_kernel;
	uint64_t watched_since_ns;  /* CLOCK_MONOTONIC, when the longest launches of the last look began */
	uint64_t watched_others_ns; /* slices.others_ns when these launches were first seen */
	char note[64];              /* the claim's note, as the library wrote it last */

	pthread_t agent;
	bool has_agent;
	_Atomic bool has_agent_ended; /* the agent has left its loop */
};

/* ---- flow_contexts.c ---- */

/* Charges the tenant for what the card did for this program in that stretch. of: the flow. */
void ll_flow_charge(void *of, const struct ll_timing_stretch *stretch);

/* Charges the time of the present visit up to now_ns. To be called after each look at the turn. */
void ll_flow_charge_visit(struct ll_flow *flow, uint64_t now_ns);

/* Finds the timing of a context. find returns NULL if there is none. get makes one if there is none, and returns NULL
 * if there is no memory or handle is NULL. */
struct ll_flow_context *ll_flow_find_context(struct ll_flow *flow, const struct ll_cu_context *handle);
struct ll_flow_context *ll_flow_get_context(struct ll_flow *flow, struct ll_cu_context *handle);

/* Before and after calls that let the lock go. The context may end meanwhile; its last user frees it. context may be
 * NULL. */
void ll_flow_use(struct ll_flow_context *context);
void ll_flow_leave_unused(struct ll_flow_context *context);

/* Loops over the contexts for calls that let the lock go: each context is in use in its round. If a context ends
 * meanwhile, those behind it may have ended too, and are left to the next tick. Do not leave the loop by break. */
struct ll_flow_context *ll_flow_first_used(struct ll_flow *flow);
struct ll_flow_context *ll_flow_next_used(struct ll_flow_context *context);

#define LL_FLOW_EACH_USED(flow, context)                                                                               \
	for (struct ll_flow_context *context = ll_flow_first_used(flow); (context);                                    \
	     context = ll_flow_next_used(context))

/* Takes the context out of the list, and frees it when its last user leaves it. Nothing happens if it is not there. */
void ll_flow_drop_context(struct ll_flow *flow, const struct ll_cu_context *handle);

/* ---- flow_others.c ---- */

/* Looks whose turn it is, here and on the tenant's first card. queued and turn.queued_launches must be up to date. */
void ll_flow_look(struct ll_flow *flow, uint64_t now_ns, bool is_idle);

/* After that: tells the timing whether others share the card, and whether by slices. */
void ll_flow_tell_others(struct ll_flow *flow, uint64_t now_ns);

/* Sets how many launches may pass an open gate without a timing event: LL_FLOW_OPEN_NS of work; fewer while programs
 * share by slices, because the timed launches then are a sample of the others. What is left of that number counts on
 * when a launch is timed for another reason. */
void ll_flow_set_open_limit(struct ll_flow *flow, const struct ll_timing *timing);

/* Whether a launch may go out of turn, because another card of the tenant may wait for it. Then it is counted. */
bool ll_flow_passes_awaited(struct ll_flow *flow);

/* Notes that so many launches were made. Needs no lock. */
void ll_flow_note_launches(struct ll_flow *flow, uint64_t launches);

/* Tells the other tenants how the program launches, if enough launches were made since the last time. */
void ll_flow_tell_launch_mode(struct ll_flow *flow, uint64_t now_ns);

/* ---- flow_tick.c ---- */

/* Time between two looks of the agent while a launch waits for what the card does; and while all that was launched
 * waits on the card: whoever gives the turn then wakes this program. */
#define LL_FLOW_POLL_NS (100 * LL_NS_PER_US)
#define LL_FLOW_HELD_NS (5 * LL_NS_PER_MS)

/* Takes the flow's lock, and takes back prepaid launches that did not come (prepaid.h). */
void ll_flow_lock(struct ll_flow *flow);

/* One look at what has ended and whose turn it is. Returns when the next look is due (CLOCK_MONOTONIC). */
uint64_t ll_flow_tick(struct ll_flow *flow, uint64_t now_ns);

/* Records timing events behind work that has none, in the agent's thread. */
void ll_flow_close_tails(struct ll_flow *flow);

/* Adds the launches that passed the open gate to the timing. Only their number is known. They are taken to be in the
 * stream of the last timing event. */
void ll_flow_note_untimed(struct ll_flow *flow);

/* Tells loadlined that the program has launches to make, and wakes the agent, which sleeps while nothing is wanted. */
void ll_flow_want(struct ll_flow *flow, uint64_t now_ns);

/* A launch is about to be made: the card has work of the program. */
void ll_flow_note_launching(struct ll_flow *flow);

/* By the last tick: whether a launch may go now; whether one may go without another look; and until when a launch that
 * may not go shall sleep. */
bool ll_flow_may_go(const struct ll_flow *flow);
bool ll_flow_is_in_turn(const struct ll_flow *flow, uint64_t now_ns);
uint64_t ll_flow_sleep_until_ns(const struct ll_flow *flow, uint64_t now_ns);

/* Whether a launch may go although the queue is full, because nothing in it has ended for far longer than it should
 * take. The queue may wait for what this launch brings (a value, a host function). One more launch does no harm. */
bool ll_flow_passes_stalled_queue(struct ll_flow *flow, uint64_t now_ns);

/* Whether the tenant's gate on the card is shut. */
bool ll_flow_is_card_gate_shut(const struct ll_flow *flow);

/* ---- flow_hold.c ---- */

/*
 * Before a launch, with its context current: lets the stream wait for the tenant's gate on the card if it must. True:
 * the launch may be made. False: it must wait for its turn in the host, because it cannot wait on the card, or because
 * the card is not shared by visits. The lock is let go meanwhile, and the thread may wait for room in the queue.
 */
bool ll_flow_waits_on_card(struct ll_flow *flow, struct ll_flow_context *context, struct ll_timing_stream stream);

/* Whether a launch needs no further wait on the card before it. context may be NULL. */
bool ll_flow_may_pass_unheld(const struct ll_flow *flow, const struct ll_flow_context *context,
			     struct ll_timing_stream stream);

/* The claim is no longer this program's: opens its gates on the card, so that nothing stays waiting there. */
void ll_flow_leave_gates(struct ll_flow *flow);

/* ---- watch.c: kernels that never end, `loadline run --max-kernel TIME[:kill]` ---- */

/*
 * Looks at what runs, and reports it or ends the program. The agent calls it.
 *
 * A kernel cannot be stopped. So the library reports it: the claim's note says for how long the kernel runs, and
 * `loadline status` shows the note. With :kill the library ends the program by SIGKILL, because a program that waits
 * for its card ends by nothing less. This is the only place where the library ends its host: the user asked for it.
 */
void ll_watch_kernels(struct ll_flow *flow, uint64_t now_ns);

#endif
