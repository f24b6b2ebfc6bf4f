/* A driver that failed to record or to read an event: until the events are made anew, work is charged as time passes in
 * which its streams are seen at work, so that a limit holds meanwhile. */
#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/time/flow_state.h"

/* The events are made anew when nothing is on the card, for nothing would tell when that ended; but no sooner, and no
 * later, than this after they have failed. The first time doubles, up to the last, while they go on failing. */
#define FIRST_RETRY_NS (10 * LL_NS_PER_MS)
#define LAST_RETRY_NS (1000 * LL_NS_PER_MS)
/* What was done before it was found out, at most. */
#define UNSEEN_NS (20 * LL_NS_PER_MS)

/* Calls `look` for each context whose timing events are blind, which is current then; whether any was true. */
static bool any_blind(struct ll_flow *flow, bool (*look)(struct ll_timing *timing))
{
	bool is_any = false;
	LL_FLOW_EACH_USED (flow, context) {
		struct ll_cu_context *before;
		if (ll_timing_is_blind(context->timing) &&
		    ll_real()->cuCtxPushCurrent_v2(context->handle) == LL_CUDA_SUCCESS) {
			is_any |= look(context->timing);
			ll_real()->cuCtxPopCurrent_v2(&before);
		}
	}
	return is_any;
}

static void note_blindness(struct ll_flow *flow, uint64_t now_ns)
{
	bool fails_again = flow->blind_since_ns && now_ns - flow->blind_since_ns < 2 * LAST_RETRY_NS;
	uint64_t wait_ns = fails_again ? 2 * flow->blind_wait_ns : FIRST_RETRY_NS;
	flow->blind_wait_ns = wait_ns < LAST_RETRY_NS ? wait_ns : LAST_RETRY_NS;
	flow->blind_since_ns = now_ns;
	if (now_ns - flow->charged_ns > UNSEEN_NS)
		flow->charged_ns = now_ns - UNSEEN_NS;
}

void ll_flow_tend_blind(struct ll_flow *flow, uint64_t now_ns)
{
	bool is_new = flow->is_blind && !flow->was_blind;
	if (is_new)
		note_blindness(flow, now_ns);
	flow->was_blind = flow->is_blind;
	if (!flow->is_blind)
		return;
	bool has_work = any_blind(flow, ll_timing_has_work_unseen);
	if ((has_work || is_new) && now_ns > flow->charged_ns)
		ll_flow_charge(flow, &(struct ll_timing_stretch){.start_ns = flow->charged_ns,
								 .end_ns = now_ns,
								 .fresh_ns = now_ns - flow->charged_ns});
	flow->charged_ns = now_ns;
	uint64_t blind_ns = now_ns - flow->blind_since_ns;
	if (blind_ns >= LAST_RETRY_NS || (!has_work && blind_ns >= flow->blind_wait_ns))
		any_blind(flow, ll_timing_begin_anew);
}
