/*
 * flow.h - a program's launches on one card: let through in its turn, within its cap, and timed.
 *
 * At an open gate (gate.h) a launch is only counted. Else, and when the count wants a mark, it goes through
 * ll_flow_enter, which waits for the turn, for tokens and for room in the queue, and ll_flow_leave, which marks it
 * (marks.h). Waiting is done in the caller's thread, before the call, and always ends: the turn protocol
 * (ledger/turn.h) gives everybody a turn, and after LL_FLOW_LONGEST_WAIT_NS a launch goes through in any case.
 *
 * Queued work is bounded, so that a turn can end: LL_FLOW_QUEUE_NS, or a kernel and the one behind it; for a low class
 * LL_FLOW_QUEUE_LOW_NS. While nobody else wants the card and the cap is far, four times that.
 *
 * A thread per process and card (the agent) finds ended work when no launch comes, gives the turn back, keeps the
 * claim's heartbeat. All signals are blocked in it. In a forked child there is none of this: the child makes its own.
 */
#ifndef LOADLINE_SHIM_TIME_FLOW_H
#define LOADLINE_SHIM_TIME_FLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ledger/turn.h"
#include "shim/time/gate.h"
#include "shim/time/marks.h"

#define LL_FLOW_QUEUE_NS UINT64_C(2000000)
#define LL_FLOW_QUEUE_LOW_NS UINT64_C(500000)
/* Work between two marks while others want the card; for a low class it is LL_MARK_EVERY_NS. While nobody does it is
 * half of what may be queued. */
#define LL_FLOW_BATCH_TURNS_NS UINT64_C(500000)
/* Work that may go unmarked through an open gate: what is not known of a queue when a newcomer shuts the gate. */
#define LL_FLOW_OPEN_NS UINT64_C(4000000)
#define LL_FLOW_LONGEST_WAIT_NS UINT64_C(60000000000)

struct ll_flow;

/* What the flow's agent asks of whoever made the flow: on the agent's thread, with no lock of the flow held. */
struct ll_flow_owner {
	bool (*retake_claim)(const struct ll_flow *flow); /* the claim was lost; true: the flow has one that is good */
	void (*give_up_reserve)(const struct ll_flow *flow); /* another process of the tenant was refused memory */
};

/* claim, count and owner stay the caller's and must outlive the flow. -errno. The agent runs from here on. */
int ll_flow_new(struct ll_claim *claim, struct ll_gate_count *count, const struct ll_flow_owner *owner,
		struct ll_flow **ret_flow);

/* Launches that run for longer are reported, and with kills end the process (watch.h). 0: none. */
void ll_flow_limit_kernels(struct ll_flow *flow, uint64_t max_kernel_ns, bool kills);

/*
 * The tenant has several cards, and this is not the first: while it has the turn on that one it is called to this
 * (ledger/turn.h). The ledger of the first stays the caller's and must outlive the flow.
 */
void ll_flow_follow(struct ll_flow *flow, const struct ll_ledger *first, uint64_t tenant_id);

/* At the end of the process, before the driver ends: nobody waits any more, and the agent makes no more calls. */
void ll_flow_end(struct ll_flow *flow);

/* The word to read before each launch. */
_Atomic uint32_t *ll_flow_gate(struct ll_flow *flow);

/* Whether this card's gate lets a launch pass with nothing else to do, where a process has several cards and no gate
 * stands for all of its launches (gate.h); then it is counted. Takes no lock. */
bool ll_flow_passes_open_gate(struct ll_flow *flow);

/*
 * A launch that the gate did not let through: true lets it go at once, for it is this program's turn, nothing is owed,
 * and the launch needs no mark: it is counted. False wants enter and leave.
 */
bool ll_flow_count(struct ll_flow *flow, struct ll_cu_context *context, struct ll_mark_stream stream, uint64_t kind);

/* Around a launch that was not just counted. context: the stream's, and the current one; NULL: not timed. launched_ns:
 * CLOCK_MONOTONIC when the driver's call returned, 0 if it failed. */
void ll_flow_enter(struct ll_flow *flow, struct ll_cu_context *context, struct ll_mark_stream stream, uint64_t kind);
void ll_flow_leave(struct ll_flow *flow, struct ll_cu_context *context, struct ll_mark_stream stream, uint64_t kind,
		   uint64_t launched_ns);

/* Between them no mark is made, by any thread; but one that waits for room in a full queue may still come, and nobody
 * waits for that (mark_lock.h). Short: whoever launches waits. False: the process ends, nothing is held and no mark is
 * made any more. */
bool ll_flow_hold(struct ll_flow *flow);

/* While held: a capture of that stream has begun. */
void ll_flow_note_capture(struct ll_flow *flow, struct ll_cu_context *context, struct ll_mark_stream stream);
void ll_flow_release(struct ll_flow *flow);

/* Before a stream or context is destroyed. The stream's last launches are marked where its context is_current. */
void ll_flow_forget_stream(struct ll_flow *flow, struct ll_cu_context *context, struct ll_mark_stream stream,
			   bool is_current);
void ll_flow_forget_context(struct ll_flow *flow, struct ll_cu_context *context);

#endif
