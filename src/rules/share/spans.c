#include "rules/share/spans.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void ll_spans_fini(struct ll_spans *spans)
{
	free(spans->items);
	memset(spans, 0, sizeof *spans);
}

static bool make_room(struct ll_spans *spans)
{
	if (spans->count < spans->room)
		return true;
	size_t room = spans->room ? 2 * spans->room : FIRST_ROOM;
	struct ll_time_span *items = realloc(spans->items, room * sizeof *items);
	if (!items) {
		spans->failed = true;
		return false;
	}
	spans->items = items;
	spans->room = room;
	return true;
}

void ll_spans_add(struct ll_spans *spans, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return;
	struct ll_time_span *last = spans->count ? &spans->items[spans->count - 1] : NULL;
	if (last && start_ns >= last->start_ns && start_ns <= last->end_ns) {
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		return;
	}
	if (!make_room(spans))
		return;
	spans->is_unsettled |= last && start_ns < last->start_ns;
	spans->items[spans->count++] = (struct ll_time_span){start_ns, end_ns};
}

static int by_start(const void *a, const void *b)
{
	const struct ll_time_span *first = a, *second = b;
	return first->start_ns < second->start_ns ? -1 : first->start_ns > second->start_ns;
}

void ll_spans_settle(struct ll_spans *spans)
{
	if (!spans->is_unsettled)
		return;
	qsort(spans->items, spans->count, sizeof *spans->items, by_start);
	size_t count = spans->count;
	spans->count = 0;
	for (size_t i = 0; i < count; i++) /* add never writes beyond item i, which is read first */
		ll_spans_add(spans, spans->items[i].start_ns, spans->items[i].end_ns);
	spans->is_unsettled = false;
}

uint64_t ll_spans_total_ns(const struct ll_spans *spans)
{
	uint64_t total_ns = 0;
	for (size_t i = 0; i < spans->count; i++)
		total_ns += spans->items[i].end_ns - spans->items[i].start_ns;
	return total_ns;
}

void ll_spans_union(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret)
{
	struct ll_spans sum = {.failed = a->failed || b->failed};
	for (size_t i = 0, j = 0; i < a->count || j < b->count;) {
		bool takes_a = j == b->count || (i < a->count && a->items[i].start_ns <= b->items[j].start_ns);
		const struct ll_time_span *item = takes_a ? &a->items[i++] : &b->items[j++];
		ll_spans_add(&sum, item->start_ns, item->end_ns);
	}
	*ret = sum;
}

void ll_spans_both(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret)
{
	struct ll_spans both = {.failed = a->failed || b->failed};
	for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
		const struct ll_time_span *first = &a->items[i], *second = &b->items[j];
		ll_spans_add(&both, first->start_ns > second->start_ns ? first->start_ns : second->start_ns,
			     first->end_ns < second->end_ns ? first->end_ns : second->end_ns);
		if (first->end_ns < second->end_ns)
			i++;
		else
			j++;
	}
	*ret = both;
}

void ll_spans_without(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret)
{
	struct ll_spans rest = {.failed = a->failed || b->failed};
	size_t j = 0;
	for (size_t i = 0; i < a->count; i++) {
		uint64_t from_ns = a->items[i].start_ns, end_ns = a->items[i].end_ns;
		while (j < b->count && b->items[j].end_ns <= from_ns)
			j++;
		for (size_t k = j; k < b->count && b->items[k].start_ns < end_ns; k++) {
			ll_spans_add(&rest, from_ns, b->items[k].start_ns);
			from_ns = b->items[k].end_ns > from_ns ? b->items[k].end_ns : from_ns;
		}
		ll_spans_add(&rest, from_ns, end_ns);
	}
	*ret = rest;
}

uint64_t ll_spans_shared_ns(const struct ll_spans *const *sets, size_t count, bool *ret_failed)
{
	struct ll_spans once = {0}, twice = {0};
	for (size_t i = 0; i < count; i++) {
		struct ll_spans again = {0}, more = {0}, all = {0};
		ll_spans_both(&once, sets[i], &again);
		ll_spans_union(&twice, &again, &more);
		ll_spans_union(&once, sets[i], &all);
		ll_spans_fini(&again);
		ll_spans_fini(&once);
		ll_spans_fini(&twice);
		once = all;
		twice = more;
	}
	uint64_t shared_ns = ll_spans_total_ns(&twice);
	*ret_failed = once.failed || twice.failed;
	ll_spans_fini(&once);
	ll_spans_fini(&twice);
	return shared_ns;
}

/* ---- why a card was idle ---- */

/* Removes set from rest, and returns how much was removed. */
static uint64_t remove_spans(struct ll_spans *rest, const struct ll_spans *set)
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
	remove_spans(&communicating, view->computation);
	struct ll_idle_split split = {
	    .window_ns = ll_spans_total_ns(&rest),
	    .communication_ns = ll_spans_total_ns(&communicating),
	};
	split.busy_ns = remove_spans(&rest, view->kernels);
	split.copies_ns = remove_spans(&rest, view->copies);
	split.gate_ns = remove_spans(&rest, view->gate);
	split.host_ns = remove_spans(&rest, view->host);
	split.io_ns = remove_spans(&rest, view->io);
	split.waiting_ns = ll_spans_total_ns(&rest);
	bool is_whole = !rest.failed && !communicating.failed;
	ll_spans_fini(&rest);
	ll_spans_fini(&communicating);
	if (is_whole)
		*ret_split = split;
	return is_whole;
}
