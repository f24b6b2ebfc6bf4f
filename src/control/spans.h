/*
 * spans.h - sets of moments: intervals of time, as long as there are any, and what can be asked of several such sets.
 *
 * A set is filled in any order and with overlaps (ll_spans_add), and then settled: sorted, and what touches is one.
 * All functions but add, settle and fini want settled sets and give settled ones. Memory that runs out sets failed,
 * and what did not fit is not there: check it once, at the end.
 */
#ifndef LOADLINE_CONTROL_SPANS_H
#define LOADLINE_CONTROL_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_span {
	uint64_t start_ns, end_ns; /* start < end: without its end */
};

/* Zeroed it is an empty set. */
struct ll_spans {
	struct ll_span *items;
	size_t count, room;
	bool is_unsettled;
	bool failed;
};

void ll_spans_fini(struct ll_spans *spans);

/* Nothing where end <= start. In order, and touching, it costs no memory. */
void ll_spans_add(struct ll_spans *spans, uint64_t start_ns, uint64_t end_ns);
void ll_spans_settle(struct ll_spans *spans);

uint64_t ll_spans_total_ns(const struct ll_spans *spans);

/* *ret: freshly made (zeroed or not), for ll_spans_fini; never one of the arguments. */
void ll_spans_union(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret);
void ll_spans_both(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret);
void ll_spans_without(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret);

/* Time that lies in two or more of the sets. */
uint64_t ll_spans_shared_ns(const struct ll_spans *const *sets, size_t count, bool *ret_failed);

#endif
