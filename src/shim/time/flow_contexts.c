/* The contexts and streams in which a flow's launches are timed. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/scope.h"
#include "ledger/port.h"
#include "shim/time/flow_state.h"

void ll_flow_charge(void *of, const struct ll_timing_stretch *stretch)
{
	struct ll_flow *flow = of;
	uint64_t start_ns = stretch->start_ns, end_ns = stretch->end_ns;
	flow->progress_ns = ll_now_ns();
	bool is_by_visits = flow->look.is_by_visits && flow->look.waiting_claims;
	if (is_by_visits || end_ns <= flow->visits_to_ns) /* its visits are charged */
		return;
	start_ns = start_ns > flow->visits_to_ns ? start_ns : flow->visits_to_ns;
	uint64_t fresh_ns = stretch->fresh_ns < end_ns - start_ns ? stretch->fresh_ns : end_ns - start_ns;
	flow->charged_ns = end_ns;
	uint64_t own_ns = stretch->is_ours ? end_ns - start_ns : ll_slices_own_ns(&flow->slices, start_ns, end_ns);
	double own_part = (double)own_ns / (double)(end_ns - start_ns);
	ll_port_charge(flow->claim, end_ns - own_ns, end_ns, (uint64_t)(own_part * (double)fresh_ns));
}

struct ll_flow_context *ll_flow_find_context(struct ll_flow *flow, const struct ll_cu_context *handle)
{
	for (struct ll_flow_context *context = flow->contexts; context && handle; context = context->next) {
		if (context->handle == handle)
			return context;
	}
	return NULL;
}

struct ll_flow_context *ll_flow_get_context(struct ll_flow *flow, struct ll_cu_context *handle)
{
	struct ll_flow_context *known = ll_flow_find_context(flow, handle);
	if (known || !handle)
		return known;
	struct ll_flow_context *context = calloc(1, sizeof *context);
	struct ll_timing *timing = context ? ll_timing_new(&flow->lock, ll_flow_charge, flow) : NULL;
	if (!timing) {
		free(context);
		return NULL;
	}
	*context = (struct ll_flow_context){.handle = handle, .timing = timing, .next = flow->contexts};
	flow->contexts = context;
	return context;
}

void ll_flow_use(struct ll_flow_context *context)
{
	if (context)
		context->users++;
}

void ll_flow_free_unused(struct ll_flow_context *context)
{
	if (context->users || !context->is_gone)
		return;
	ll_timing_free(context->timing, false); /* its events end with the context */
	free(context);
}

void ll_flow_leave_unused(struct ll_flow_context *context)
{
	if (!context)
		return;
	context->users--;
	ll_flow_free_unused(context);
}

struct ll_flow_context *ll_flow_first_used(struct ll_flow *flow)
{
	ll_flow_use(flow->contexts);
	return flow->contexts;
}

struct ll_flow_context *ll_flow_next_used(struct ll_flow_context *context)
{
	struct ll_flow_context *next = context->is_gone ? NULL : context->next;
	ll_flow_leave_unused(context);
	ll_flow_use(next);
	return next;
}

bool ll_flow_hold(struct ll_flow *flow)
{
	if (atomic_load(&flow->is_ending))
		return false;
	pthread_mutex_lock(&flow->lock.mutex);
	ll_timing_lock_settle(&flow->lock);
	return true;
}

void ll_flow_note_capture(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream)
{
	ll_captures_add(&flow->captures, context, stream);
}

void ll_flow_release(struct ll_flow *flow)
{
	pthread_mutex_unlock(&flow->lock.mutex);
}

/* Destructors may come after the end, when the agent may hang with the lock. */
void ll_flow_forget_stream(struct ll_flow *flow, struct ll_cu_context *context, struct ll_timing_stream stream,
			   bool is_current)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	ll_timing_lock_settle(&flow->lock);
	ll_captures_forget_stream(&flow->captures, stream);
	struct ll_flow_context *known = ll_flow_find_context(flow, context);
	ll_flow_use(known);
	if (known)
		ll_timing_forget_stream(known->timing, stream, is_current);
	ll_flow_leave_unused(known);
	pthread_mutex_unlock(&flow->lock.mutex);
}

void ll_flow_forget_context(struct ll_flow *flow, struct ll_cu_context *context)
{
	if (atomic_load(&flow->is_ending))
		return;
	LL_SCOPE_NO_CANCEL;
	ll_flow_lock(flow);
	ll_timing_lock_settle(&flow->lock);
	ll_flow_tick(flow, ll_now_ns());
	ll_captures_forget_context(&flow->captures, context);
	for (struct ll_flow_context **link = &flow->contexts; *link; link = &(*link)->next) {
		struct ll_flow_context *item = *link;
		if (item->handle != context)
			continue;
		*link = item->next;
		if (flow->last_context == context)
			flow->last_context = NULL;
		item->is_gone = true;
		ll_flow_free_unused(item);
		break;
	}
	pthread_mutex_unlock(&flow->lock.mutex);
}
