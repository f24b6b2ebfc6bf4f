/*
 * flow_state.h - the inside of a flow, shared by the files flow*.c, agent.c and watch.c.
 *
 *     flow_tick.c   the contexts in which launches are timed, and charging; the state of other tenants and other cards;
 *                   work that has ended, and who has the turn
 *     flow_hold.c   launches that wait on the card
 *     watch.c       kernels that never end
 *     agent.c       the thread that ticks while the program makes no launch
 *     flow.c        the functions that hooks call (flow.h)
 *
 * Each of these files calls only files above it in this list. The caller of a function of this header holds the flow's
 * lock, unless the function's comment says that it needs no lock.
 */
#ifndef LOADLINE_SHIM_TIME_FLOW_STATE_H
#define LOADLINE_SHIM_TIME_FLOW_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "rules/share/slices.h"
#include "shim/time/captures.h"
#include "shim/time/flow.h"
#include "shim/time/gate.h"
#include "shim/time/timing_clock.h"

/* ---- the gate of a context on the card ---- */

/*
 * Makes the streams of one context wait, on the card, until the tenant's gate is open (shim/link/port.h).
 *
 * The gate is a 32-bit word in host memory, and the stream waits for a value of this word. Each context maps the word's
 * page again and registers its own mapping with the driver. So the word stays available when another context of the
 * program ends. When the context ends, the driver unregisters the page. The mapping stays.
 */

struct ll_card_gate {
	enum { LL_CARD_GATE_NEW, LL_CARD_GATE_READY, LL_CARD_GATE_NONE } state;
	_Atomic uint32_t *word;  /* in the context's own mapping, which is never unmapped */
	ll_cu_deviceptr address; /* the word's address on the card */
};

/*
 * Prepares the current context to wait for `word`, which is in the job's page. Returns false if this context can never
 * wait on the card: the driver has no such waits, or it does not register the page.
 */
bool ll_card_gate_prepare(struct ll_card_gate *gate, _Atomic uint32_t *word);

/* Adds a wait to the stream: all later launches into the stream wait until the gate is open. Returns false if the
 * driver refused. The stream must not be in a capture. */
bool ll_card_gate_wait(const struct ll_card_gate *gate, struct ll_cu_stream *stream);

/* Stops using the word, because it belongs to the tenant no longer. Opens the word's gate, so streams that wait for it
 * continue. The next launch prepares the gate again. */
void ll_card_gate_leave(struct ll_card_gate *gate);

/* ---- the flow ---- */

struct ll_flow_context {
	struct ll_cu_context *handle;
	struct ll_timing *timing;
	struct ll_card_gate gate;
	unsigned users; /* threads that use the context while the lock is released */
	bool is_gone;   /* the context is no longer in the list; its last user frees it */
	struct ll_flow_context *next;
};

/* The data from which the launch mode is computed, counted since it was computed last. */
struct ll_flow_launch_mode {
	_Atomic uint64_t launches, all_launches; /* threads also count without the lock, so a few counts may be lost */
	uint64_t work_ns;                        /* the card's time for this program, as measured by timing events */
	uint64_t waits_before, since_ns;
	bool is_ahead; /* the last computed launch mode was LL_LAUNCH_MODE_ASYNC */
};

enum { LL_FLOW_UNTRACED = 512 };

struct ll_flow {
	const struct ll_flow_owner *owner;
	_Atomic(struct ll_claim *)
	    claim;      /* written under the lock (agent.h); wake counts and gates are read without the lock */
	bool has_first; /* the tenant works on several cards, and this is not the first one */
	struct ll_timing_lock lock; /* guards all below; released in waits and while an event is recorded */
	struct ll_flow_context *contexts;
	struct ll_captures captures;
	_Atomic unsigned context_waits; /* threads that wait for a whole context; no capture begins meanwhile */
	struct ll_turn turn;
	struct ll_turn_look look; /* the turn as the last tick saw it */
	struct ll_slices slices;
	struct ll_timing_stretch untraced[LL_FLOW_UNTRACED]; /* a ring: work that is charged when the trace has come to
								its end (slices/stays.h) */
	unsigned untraced_first, untraced_count;
	uint64_t progress_ns;  /* CLOCK_MONOTONIC when the queue last became shorter or was seen to be short, or when a
				  launch last passed a stalled queue */
	uint64_t charged_ns;   /* the card's work for this program is charged up to this time */
	uint64_t ticked_ns;    /* CLOCK_MONOTONIC of the last tick */
	uint64_t visit_ns;     /* the present visit is charged up to this time; 0: this program has no visit */
	uint64_t visits_to_ns; /* before this time the tenant was charged its visits and not its timed work */
	struct ll_timing_queue queued; /* upper bound: launches counted since the last look may have ended */
	struct ll_prepaid prepaid;
	struct ll_flow_launch_mode launch_mode;
	uint64_t idle_since_ns;      /* the card has had no work of this program since this time; 0: it has some */
	uint64_t recorded_ns;        /* when the agent last asked, at an open gate, for a timing event */
	unsigned waiting;            /* threads that wait in ll_flow_enter */
	unsigned launching;          /* threads from the end of their wait in ll_flow_enter until ll_flow_leave */
	bool is_wanting;             /* the claim says that the program wants the card */
	struct ll_gang gang;         /* state of the tenant's first card, if this is another card */
	uint32_t awaited;            /* launches on this card for which work on another card of the tenant may wait */
	bool is_in_debt;             /* launches wait until the cap's account is full enough */
	bool is_blind;               /* timing events fail, so nothing is timed and the gate stays shut */
	bool was_blind;              /* the value of is_blind at the agent's last look */
	uint64_t blind_since_ns;     /* when the timing events failed last */
	uint64_t blind_wait_ns;      /* time from blind_since_ns until the events are made again */
	bool is_lost;                /* other processes cleared the claim, and the flow has no new claim yet */
	_Atomic bool is_ending;      /* no launch waits any more, and no timing event is recorded */
	struct ll_gate_count *count; /* counts launches that pass the open gate */
	uint64_t gaps, gap_ns;       /* the gaps of the gate's line at the last look, and when it had new ones */
	uint64_t to_sample;          /* launches before the next sample (ll_flow_is_sampled); 0: not chosen yet */
	unsigned sliced_by;          /* programs that shared the card by time slices at sliced_ns */
	uint64_t sliced_ns;
	uint64_t dice;                      /* state of the random number generator that varies the open gate's limit */
	struct ll_cu_context *last_context; /* context of the last timed launch; NULL: none yet */
	struct ll_timing_stream last_stream;

	uint64_t max_kernel_ns; /* 0: none */
	bool kills_at_max_kernel;
	uint64_t watched_since_ns;  /* CLOCK_MONOTONIC when the longest batch of the last look began */
	uint64_t watched_others_ns; /* the value of slices.others_ns when this batch was first seen */
	char note[64];              /* the text that the library last wrote into the claim's note */

	pthread_t agent;
	bool has_agent;
	_Atomic bool has_agent_ended; /* the agent's thread has left its loop */
};

/* ---- contexts and charging ---- */

/* Returns how much of start..end the card worked for this program, if it had work all the time: without the other
 * programs' parts, and without the time off the card. */
uint64_t ll_flow_own_ns(const struct ll_flow *flow, uint64_t start_ns, uint64_t end_ns);

/* Charges the tenant for the card's work for this program in this stretch of time. of: the flow. */
void ll_flow_charge(void *of, const struct ll_timing_stretch *stretch);

/* Charges the work up to whose end the trace is known by now. */
void ll_flow_charge_traced(struct ll_flow *flow);

/* Charges the time of the present visit up to now_ns. Call it after each ll_flow_look. */
void ll_flow_charge_visit(struct ll_flow *flow, uint64_t now_ns);

/* Find the flow's object for a context. find_context returns NULL if there is none. get_context makes one if there is
 * none. It returns NULL if there is no memory or if handle is NULL. */
struct ll_flow_context *ll_flow_find_context(struct ll_flow *flow, const struct ll_cu_context *handle);
struct ll_flow_context *ll_flow_get_context(struct ll_flow *flow, struct ll_cu_context *handle);

/* Call these before and after calls that release the lock. The context may end meanwhile; then its last user frees it.
 * context may be NULL. */
void ll_flow_use(struct ll_flow_context *context);
void ll_flow_leave_unused(struct ll_flow_context *context);

/* Loops over the contexts, for calls that release the lock. Each context counts as used during its iteration. If a
 * context ends during its iteration, the loop ends, because the contexts behind it may have ended too. The next tick
 * visits them. Do not leave the loop by break. */
struct ll_flow_context *ll_flow_first_used(struct ll_flow *flow);
struct ll_flow_context *ll_flow_next_used(struct ll_flow_context *context);

#define LL_FLOW_EACH_USED(flow, context)                                                                               \
	for (struct ll_flow_context *context = ll_flow_first_used(flow); (context);                                    \
	     context = ll_flow_next_used(context))

/* Removes the context from the list. Its last user frees it. Does nothing if the context is not in the list. */
void ll_flow_drop_context(struct ll_flow *flow, const struct ll_cu_context *handle);

/* ---- other tenants and other cards ---- */

/* Reads which tenant has the turn on this card and on the tenant's first card, and writes flow->look and flow->gang.
 * flow->queued and flow->turn.queued_launches must be up to date. */
void ll_flow_look(struct ll_flow *flow, uint64_t now_ns, bool is_idle);

/* Call it after ll_flow_look. Reports to the timing of each context whether other programs share the card, and whether
 * they share it by time slices. */
void ll_flow_tell_others(struct ll_flow *flow, uint64_t now_ns);

/* Returns whether timed launches are a sample of those that pass the open gate: programs share by time slices, or
 * streams have gaps (ll_timing_note_gap). */
bool ll_flow_is_sampled(const struct ll_flow *flow, uint64_t now_ns);

/* Sets how many launches may pass an open gate without a timing event: as many as make LL_FLOW_OPEN_NS of work. While
 * launches are sampled the number is smaller, because then the timed launches are a sample of the others. If a
 * launch is timed for another reason, the count to the next sample continues. */
void ll_flow_set_open_limit(struct ll_flow *flow, const struct ll_timing *timing);

/* Returns whether a launch may be made out of turn, because work on another card of the tenant may wait for it. If so,
 * subtracts it from flow->awaited. */
bool ll_flow_passes_awaited(struct ll_flow *flow);

/* Adds to the count of launches. Needs no lock. */
void ll_flow_note_launches(struct ll_flow *flow, uint64_t launches);

/* Writes the program's launch mode into the claim, if the program made enough launches since the last time. */
void ll_flow_tell_launch_mode(struct ll_flow *flow, uint64_t now_ns);

/* ---- flow_tick.c ---- */

/* Time between two looks of the agent. POLL: a launch waits for work on the card to end. OFF: the same while the
 * program is off the card. HELD: all launched work waits on the card. Then the process that gives the turn to this
 * program wakes it. */
#define LL_FLOW_POLL_NS (100 * LL_NS_PER_US)
#define LL_FLOW_OFF_NS (1 * LL_NS_PER_MS)
#define LL_FLOW_HELD_NS (5 * LL_NS_PER_MS)

/* Acquires the flow's lock, and uncounts prepaid launches that were not made (gate.h). */
void ll_flow_lock(struct ll_flow *flow);

/* Finds work that has ended and reads which tenant has the turn. Returns when the next tick is due (CLOCK_MONOTONIC).
 */
uint64_t ll_flow_tick(struct ll_flow *flow, uint64_t now_ns);

/* Records timing events behind work that no event follows yet. The agent's thread calls it. */
void ll_flow_close_tails(struct ll_flow *flow);

/* Adds the launches that passed the open gate to the timing. Only their number is known. The function assumes that they
 * are in the stream of the last timed launch. */
void ll_flow_note_untimed(struct ll_flow *flow);

/* Writes into the claim that the program wants the card, and wakes the agent. The agent sleeps while the program does
 * not want the card. */
void ll_flow_want(struct ll_flow *flow, uint64_t now_ns);

/* Notes that a launch is about to be made, so the card has work of the program. */
void ll_flow_note_launching(struct ll_flow *flow);

/* These use the result of the last tick. may_go returns whether a launch may be made now. is_in_turn returns whether it
 * may be made without another tick. sleep_until_ns returns until when (CLOCK_MONOTONIC) a launch that may not be made
 * sleeps. */
bool ll_flow_may_go(const struct ll_flow *flow);
bool ll_flow_is_in_turn(const struct ll_flow *flow, uint64_t now_ns);
uint64_t ll_flow_sleep_until_ns(const struct ll_flow *flow, uint64_t now_ns);

/* Returns whether a launch may be made although the queue is full, because no work in the queue has ended for far
 * longer than its estimate. The queued work may wait for this launch (for a value that it writes, or for a host
 * function). */
bool ll_flow_passes_stalled_queue(struct ll_flow *flow, uint64_t now_ns);

/* Returns whether the tenant's gate on the card is shut. */
bool ll_flow_is_card_gate_shut(const struct ll_flow *flow);

/* ---- flow_hold.c ---- */

/*
 * Call it before a launch, with the launch's context current. If needed, makes the stream wait on the card until the
 * tenant's gate is open. Returns true if the launch may be made. Returns false if the launch must wait for its turn in
 * the host, because it cannot wait on the card or because tenants do not share the card by visits. The lock is released
 * meanwhile, and the thread may wait for room in the queue.
 */
bool ll_flow_waits_on_card(struct ll_flow *flow, struct ll_flow_context *context, struct ll_timing_stream stream);

/* Returns whether a launch needs no new wait on the card before it and the queue has room. context may be NULL. */
bool ll_flow_may_pass_unheld(const struct ll_flow *flow, const struct ll_flow_context *context,
			     struct ll_timing_stream stream);

/* Opens the program's gates on the card, so that no work waits there. Call it when the claim no longer belongs to this
 * program. */
void ll_flow_leave_gates(struct ll_flow *flow);

/* ---- watch.c: kernels that never end, `loadline run --max-kernel TIME[:kill]` ---- */

/*
 * Finds a kernel that runs for longer than its limit. Reports the kernel or ends the program. The agent calls it.
 *
 * A kernel cannot be stopped. So the library reports it: the claim's note says for how long the kernel runs, and
 * `loadline status` shows the note. With :kill the library ends the program by SIGKILL, because other signals do not
 * end a program that waits for its card. This is the only place where the library ends its host program. It does so
 * only because the user asked for it.
 */
void ll_watch_kernels(struct ll_flow *flow, uint64_t now_ns);

#endif
