/*
 * flow.h - makes the launches of a program on one card wait for the program's turn and its cap, and times them.
 *
 * While the gate is open (gate.h), a launch is only counted. If the gate is shut, or if the launch must record a timing
 * event, the hook calls ll_flow_enter and ll_flow_leave. ll_flow_enter waits for the turn, for tokens of the cap and
 * for room in the queue. ll_flow_leave records a timing event behind the launch (timing.h). The caller's thread waits
 * before it calls the driver. Every wait ends: the turn protocol (shim/link/port.h) gives each contender a turn, and
 * after LL_FLOW_LONGEST_WAIT_NS a launch passes in any case.
 *
 * While the gate is shut, the program's queued work has a bound. The bound is LL_FLOW_QUEUE_NS. If a tenant of a higher
 * class is present, it is LL_QUEUE_BENEATH_NS (rules/share/visits.h). If kernels are longer than the bound, two kernels
 * may be queued. While no other tenant wants the card and the cap's account is full enough, the bound is up to four
 * times as large.
 *
 * Each flow has a thread, the agent (agent.h). All signals are blocked in the agent. A forked child has no flow of its
 * parent and makes its own.
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
/* Work between two timing events while other tenants want the card. If a higher class is present, or if no other tenant
 * wants the card, this work is half of the bound on queued work. */
#define LL_FLOW_BATCH_TURNS_NS UINT64_C(500000)
/* Work that may pass an open gate without a timing event. When the gate is shut because another tenant arrives, at most
 * this much of the queued work is not timed. */
#define LL_FLOW_OPEN_NS UINT64_C(4000000)
#define LL_FLOW_LONGEST_WAIT_NS UINT64_C(60000000000)

struct ll_flow;

/* Callbacks of the caller that made the flow. The agent's thread calls them, and holds no lock of the flow. */
struct ll_flow_owner {
	bool (*retake_claim)(const struct ll_flow *flow);    /* the claim was lost; true: there is a new one */
	void (*give_up_reserve)(const struct ll_flow *flow); /* another process of the tenant got no memory */
	void (*tend_memory)(const struct ll_flow *flow);     /* called with each heartbeat */
};

/* Makes a flow and starts its agent. The caller keeps claim, count and owner, and they must outlive the flow. Returns 0
 * or a negative errno. */
int ll_flow_new(struct ll_claim *claim, struct ll_gate_count *count, const struct ll_flow_owner *owner,
		struct ll_flow **ret_flow);

/* Sets a time limit for kernels. The library reports a kernel that runs for longer (watch.c). If kills is true, it then
 * ends the process. max_kernel_ns 0: no limit. */
void ll_flow_limit_kernels(struct ll_flow *flow, uint64_t max_kernel_ns, bool kills);

/*
 * Call it if the tenant works on several cards and this is not the first of them. While the tenant has the turn on its
 * first card, it gets the turn on this card too.
 */
void ll_flow_set_secondary_card(struct ll_flow *flow);

/* Call it at the end of the process, before the driver ends. Afterwards launches do not wait, and the agent makes no
 * calls. */
void ll_flow_end(struct ll_flow *flow);

/* Returns the gate's word, which a hook reads before each launch. */
_Atomic uint32_t *ll_flow_gate(struct ll_flow *flow);

/* For a process with several cards, which has no common gate for all launches (gate.h). Returns true if this card's
 * gate is open and the launch needs no timing event; then the launch is counted. Takes no lock. */
bool ll_flow_passes_open_gate(struct ll_flow *flow);

/*
 * For a launch that did not pass the gate. Returns true if the launch may be made at once: the program has the turn, no
 * cap is used up, and the launch needs no timing event. Then the launch is counted. If it returns false, the launch
 * needs ll_flow_enter and ll_flow_leave.
 */
bool ll_flow_count(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key);

/* Call these before and after a launch for which ll_flow_count returned false. context: the stream's context, which is
 * current; NULL: the launch is not timed. launched_ns: CLOCK_MONOTONIC when the driver's call returned; 0: the call
 * failed. */
void ll_flow_enter(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key);
void ll_flow_leave(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
		   uint64_t kernel_key, uint64_t launched_ns);

/* Notes that the stream gets an operation that is no kernel (ll_timing_note_gap). */
void ll_flow_note_gap(struct ll_flow *flow, const struct ll_cu_context *context, struct ll_timing_stream stream);

/* Between ll_flow_hold and ll_flow_release no thread begins to record a timing event. A thread that has waited for room
 * in a full queue for LL_TIMING_LOCK_WAIT_NS may still record its event (timing_clock.h). Keep the time between the
 * calls short, because threads that launch wait. Returns false if the process is ending: then nothing is held, and no
 * timing event is recorded any more. */
bool ll_flow_hold(struct ll_flow *flow);

/* Notes that a capture of the stream has begun. Call it between ll_flow_hold and ll_flow_release. */
void ll_flow_note_capture(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream);
void ll_flow_release(struct ll_flow *flow);

/* Returns whether any stream of the card is being captured (captures.h). */
bool ll_flow_is_capturing(struct ll_flow *flow);

/*
 * Call these before and after a wait for a whole context, because such a wait makes a capture invalid.
 * ll_flow_begin_wait returns false if a capture is in progress, or if flow is NULL and the library does not know. Then
 * do not call ll_flow_end_wait. If it returns true, no capture begins until ll_flow_end_wait.
 */
bool ll_flow_begin_wait(struct ll_flow *flow);
void ll_flow_end_wait(struct ll_flow *flow);

/* Does the same as ll_flow_hold, for use before a capture begins. It first waits until no thread waits for a whole
 * context. */
bool ll_flow_hold_for_capture(struct ll_flow *flow);

/* Call these before a stream or a context is destroyed. If is_current says that the stream's context is current, the
 * stream's last launches are timed. */
void ll_flow_forget_stream(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
			   bool is_current);
void ll_flow_forget_context(struct ll_flow *flow, struct ll_cu_context *context);

#endif
