/*
 * flow.h - the launches of a program on one card: they wait for the program's turn and its cap, and are timed.
 *
 * While the gate is open (gate.h) a launch is only counted. If the gate is shut, or if the launch shall record a timing
 * event, it goes through ll_flow_enter and ll_flow_leave. ll_flow_enter waits for the turn, for tokens of the cap and
 * for room in the queue. ll_flow_leave records a timing event behind the launch (timing.h). The caller's thread waits
 * before the driver's call. Every wait ends: the turn protocol (shim/link/port.h) gives each contender a turn, and
 * after LL_FLOW_LONGEST_WAIT_NS a launch goes through in any case.
 *
 * Queued work behind a shut gate is bounded: to LL_FLOW_QUEUE_NS, beneath a higher class to LL_QUEUE_BENEATH_NS
 * (control/visits.h), or to one kernel and the one behind it. While nobody else wants the card and the cap is far, the
 * bound is four times as large.
 *
 * Each flow has a thread, the agent. While no launch comes it finds ended work, gives the turn back, and keeps the
 * claim's heartbeat. All signals are blocked in it. A forked child has no flow: it makes its own.
 */
#ifndef LOADLINE_SHIM_TIME_FLOW_H
#define LOADLINE_SHIM_TIME_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/link/port.h"
#include "shim/time/gate.h"
#include "shim/time/timing.h"

#define LL_FLOW_QUEUE_NS UINT64_C(2000000)
/* Work between two timing events while others want the card. Beneath a higher class, and while nobody else wants the
 * card, it is half of what may be queued. */
#define LL_FLOW_BATCH_TURNS_NS UINT64_C(500000)
/* Work that may pass an open gate without a timing event. When a newcomer shuts the gate, this much of the queue is
 * unknown. */
#define LL_FLOW_OPEN_NS UINT64_C(4000000)
#define LL_FLOW_LONGEST_WAIT_NS UINT64_C(60000000000)

struct ll_flow;

/* What the flow's agent asks of the caller that made the flow. Called on the agent's thread, with no lock of the flow
 * held. */
struct ll_flow_owner {
	bool (*retake_claim)(const struct ll_flow *flow); /* the claim was lost; true: the flow has one that is good */
	void (*give_up_reserve)(const struct ll_flow *flow); /* another process of the tenant was refused memory */
	void (*tend_memory)(const struct ll_flow *flow);     /* with each beat */
};

/* claim, count and owner stay the caller's and must outlive the flow. -errno. The agent runs from here on. */
int ll_flow_new(struct ll_claim *claim, struct ll_gate_count *count, const struct ll_flow_owner *owner,
		struct ll_flow **ret_flow);

/* Sets a limit for kernels: the library reports one that runs for longer (watch.c), and with kills it ends the process.
 * 0: no limit. */
void ll_flow_limit_kernels(struct ll_flow *flow, uint64_t max_kernel_ns, bool kills);

/*
 * The tenant works on several cards, and this is not the first one. While the tenant has the turn on the first card, it
 * gets the turn here too.
 */
void ll_flow_set_secondary_card(struct ll_flow *flow);

/* To be called at the end of the process, before the driver ends. Launches do not wait any more, and the agent makes no
 * more calls. */
void ll_flow_end(struct ll_flow *flow);

/* Returns the word to read before each launch. */
_Atomic uint32_t *ll_flow_gate(struct ll_flow *flow);

/* For a process with several cards, which has no gate for all of its launches (gate.h): whether this card's gate lets a
 * launch pass with nothing else to do; then it is counted. Takes no lock. */
bool ll_flow_passes_open_gate(struct ll_flow *flow);

/*
 * For a launch that did not pass the gate. True: the launch may go at once, and is counted, because it is this
 * program's turn, no cap is used up, and the launch needs no timing event. False: it needs ll_flow_enter and
 * ll_flow_leave.
 */
bool ll_flow_count(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key);

/* Before and after a launch that was not just counted. context: the stream's context, which is current; NULL: the
 * launch is not timed. launched_ns: CLOCK_MONOTONIC when the driver's call returned; 0: the call failed. */
void ll_flow_enter(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key);
void ll_flow_leave(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key, uint64_t launched_ns);

/* Between hold and release no thread records a timing event. An event that waits for room in a full queue may still be
 * recorded, and nobody waits for it (timing_lock.h). Keep the time short, because threads that launch wait. False: the
 * process ends; nothing is held, and no timing event is recorded any more. */
bool ll_flow_hold(struct ll_flow *flow);

/* A capture of that stream has begun. To be called between hold and release. */
void ll_flow_note_capture(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream);
void ll_flow_release(struct ll_flow *flow);

/* Whether a capture goes on in any stream of the card (captures.h). */
bool ll_flow_is_capturing(struct ll_flow *flow);

/*
 * Around a wait for a whole context, which would spoil a capture. False: one goes on, or it is not known, because flow
 * is NULL; then there is nothing to leave. Until ll_flow_end_wait no capture begins.
 */
bool ll_flow_begin_wait(struct ll_flow *flow);
void ll_flow_end_wait(struct ll_flow *flow);

/* As ll_flow_hold, before a capture begins: waits until no thread waits for a whole context. */
bool ll_flow_hold_for_capture(struct ll_flow *flow);

/* Before a stream or context is destroyed. If the stream's context is current, its last launches are timed. */
void ll_flow_forget_stream(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
			   bool is_current);
void ll_flow_forget_context(struct ll_flow *flow, struct ll_cu_context *context);

#endif
