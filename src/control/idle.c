#include "control/idle.h"

/* Takes what is in set out of rest; returns how much it was. */
static uint64_t take(struct ll_spans *rest, const struct ll_spans *set)
{
	struct ll_spans left = {0};
	uint64_t before_ns = ll_spans_total_ns(rest);
	ll_spans_without(rest, set, &left);
	ll_spans_fini(rest);
	*rest = left;
	return before_ns - ll_spans_total_ns(rest);
}

bool ll_idle_make_split(const struct ll_idle_view *view, struct ll_idle_split *ret_split)
{
	struct ll_spans rest = {0}, communicating = {0};
	ll_spans_add(&rest, view->start_ns, view->end_ns);
	ll_spans_both(&rest, view->communication, &communicating);
	take(&communicating, view->computation);
	struct ll_idle_split split = {
	    .window_ns = ll_spans_total_ns(&rest),
	    .communication_ns = ll_spans_total_ns(&communicating),
	};
	split.busy_ns = take(&rest, view->kernels);
	split.copies_ns = take(&rest, view->copies);
	split.gate_ns = take(&rest, view->gate);
	split.host_ns = take(&rest, view->host);
	split.io_ns = take(&rest, view->io);
	split.waiting_ns = ll_spans_total_ns(&rest);
	bool is_whole = !rest.failed && !communicating.failed;
	ll_spans_fini(&rest);
	ll_spans_fini(&communicating);
	if (is_whole)
		*ret_split = split;
	return is_whole;
}
