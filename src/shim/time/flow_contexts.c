/* Keeps the contexts in which a flow's launches are timed, and charges the tenant. */
#include <stdlib.h>

#include "base/clock.h"
#include "shim/link/port.h"
#include "shim/time/flow_state.h"

uint64_t ll_flow_own_ns(const struct ll_flow *flow, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t all_ns = end_ns > start_ns ? end_ns - start_ns : 0;
	uint64_t off_ns = ll_port_off_ns(flow->claim, start_ns, end_ns);
	if (ll_port_traced_ns(flow->claim))
		return all_ns - off_ns;
	uint64_t own_ns = ll_slices_own_ns(&flow->slices, start_ns, end_ns);
	return all_ns ? (uint64_t)((double)own_ns * (double)(all_ns - off_ns) / (double)all_ns) : 0;
}

static uint64_t part_of(uint64_t ns, uint64_t part_ns, uint64_t all_ns)
{
	part_ns = part_ns < all_ns ? part_ns : all_ns;
	return all_ns ? (uint64_t)((double)ns / (double)all_ns * (double)part_ns) : 0;
}

/* Returns the time in which the card worked for this program, in the part of the stretch from start_ns on. By the trace
 * it is the time on the card; of short kernels their own, because a program may wait between them while it is on the
 * card. ret_fresh_ns: the part of this time that no other stream has reported before. */
static uint64_t own_ns_of(const struct ll_flow *flow, const struct ll_timing_stretch *stretch, uint64_t start_ns,
			  uint64_t *ret_fresh_ns)
{
	uint64_t end_ns = stretch->end_ns, all_ns = end_ns - start_ns;
	uint64_t own_ns = ll_flow_own_ns(flow, start_ns, end_ns);
	bool is_traced = ll_port_traced_ns(flow->claim);
	if (is_traced && stretch->is_short && stretch->accounted_ns && stretch->accounted_ns < all_ns)
		own_ns = stretch->accounted_ns;
	else if (!is_traced && stretch->is_ours)
		own_ns = all_ns - ll_port_off_ns(flow->claim, start_ns, end_ns);
	*ret_fresh_ns = part_of(own_ns, is_traced ? stretch->fresh_span_ns : stretch->fresh_ns, all_ns);
	return own_ns;
}

static void charge_now(struct ll_flow *flow, const struct ll_timing_stretch *stretch)
{
	bool is_traced = ll_port_traced_ns(flow->claim);
	uint64_t start_ns = is_traced ? stretch->end_ns - stretch->span_ns : stretch->start_ns;
	uint64_t end_ns = stretch->end_ns, fresh_ns;
	uint64_t own_ns = own_ns_of(flow, stretch, start_ns, &fresh_ns);
	flow->launch_mode.work_ns += fresh_ns;
	if (stretch->accounted_ns && !is_traced)
		ll_port_note_work(flow->claim, end_ns - stretch->accounted_ns, end_ns, stretch->fresh_accounted_ns);
	else
		ll_port_note_work(flow->claim, end_ns - own_ns, end_ns, fresh_ns);
	bool is_exclusive = flow->look.is_exclusive && flow->look.waiting_claims;
	if (is_exclusive || end_ns <= flow->visits_to_ns) /* the tenant is charged its visits (ll_flow_charge_visit) */
		return;
	if (start_ns < flow->visits_to_ns)
		own_ns = own_ns_of(flow, stretch, flow->visits_to_ns, &fresh_ns);
	flow->charged_ns = end_ns > flow->charged_ns ? end_ns : flow->charged_ns;
	ll_port_charge(flow->claim, end_ns - own_ns, end_ns, fresh_ns);
}

/* Stretches wait until the trace has come to their end. */
void ll_flow_charge_traced(struct ll_flow *flow)
{
	uint64_t traced_ns = ll_port_traced_ns(flow->claim);
	while (flow->untraced_count && (!traced_ns || flow->untraced[flow->untraced_first].end_ns <= traced_ns)) {
		struct ll_timing_stretch stretch = flow->untraced[flow->untraced_first];
		flow->untraced_first = (flow->untraced_first + 1) % LL_FLOW_UNTRACED;
		flow->untraced_count--;
		charge_now(flow, &stretch);
	}
}

void ll_flow_charge(void *of, const struct ll_timing_stretch *stretch)
{
	struct ll_flow *flow = of;
	flow->progress_ns = ll_now_ns();
	uint64_t traced_ns = ll_port_traced_ns(flow->claim);
	bool waits = flow->untraced_count || (traced_ns && stretch->end_ns > traced_ns);
	if (!waits || flow->untraced_count == LL_FLOW_UNTRACED) {
		charge_now(flow, stretch);
		return;
	}
	flow->untraced[(flow->untraced_first + flow->untraced_count++) % LL_FLOW_UNTRACED] = *stretch;
	/* it is counted as charged already, so that what still runs is not counted twice */
	flow->charged_ns = stretch->end_ns > flow->charged_ns ? stretch->end_ns : flow->charged_ns;
}

/* A tenant is charged its whole visit, even if its work does not fill the visit. It is not charged while it has the
 * turn and does not want the card. While a launch of another tenant runs on after that tenant's visit, both tenants are
 * charged equal parts. */
void ll_flow_charge_visit(struct ll_flow *flow, uint64_t now_ns)
{
	const struct ll_turn_look *look = &flow->look;
	uint64_t from_ns = flow->visit_ns, to_ns = now_ns;
	bool is_exclusive = look->is_exclusive && look->waiting_claims;
	bool is_visited = is_exclusive && flow->is_wanting && (look->is_holder || flow->turn.is_overrunning);
	if (from_ns && !is_visited && look->turn_since_ns > from_ns && look->turn_since_ns < now_ns)
		to_ns = look->turn_since_ns;
	if (from_ns && to_ns > from_ns) {
		uint64_t own_ns = (to_ns - from_ns) / (1 + look->sharing);
		ll_port_charge(flow->claim, to_ns - own_ns, to_ns, own_ns);
	}
	if (!is_visited)
		flow->visit_ns = 0;
	else if (from_ns)
		flow->visit_ns = now_ns;
	else
		flow->visit_ns = look->turn_since_ns > flow->charged_ns ? look->turn_since_ns : now_ns;
	if (is_exclusive)
		flow->visits_to_ns = flow->charged_ns = now_ns;
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

static void free_unused(struct ll_flow_context *context)
{
	if (context->users || !context->is_gone)
		return;
	ll_timing_free(context->timing, false); /* the driver destroys its events together with the context */
	free(context);
}

void ll_flow_leave_unused(struct ll_flow_context *context)
{
	if (!context)
		return;
	context->users--;
	free_unused(context);
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

void ll_flow_drop_context(struct ll_flow *flow, const struct ll_cu_context *handle)
{
	struct ll_flow_context **link = &flow->contexts;
	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	struct ll_flow_context *dropped = *link;
	if (!dropped)
		return;
	*link = dropped->next;
	if (flow->last_context == handle)
		flow->last_context = NULL;
	dropped->is_gone = true;
	free_unused(dropped);
}
