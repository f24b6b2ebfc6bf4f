/*
 * spans.h - sets of time: unions of intervals, their set algebra, and the split of a window by why a card was idle.
 *
 * ll_spans_add fills a set in any order and with overlaps. ll_spans_settle then sorts it and joins intervals that
 * touch. All functions but add, settle and fini need settled sets and return settled sets. If memory runs out, the set
 * lacks what did not fit, and its member failed is set. It is enough to check failed once, at the end.
 *
 * Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_SHARE_SPANS_H
#define LOADLINE_RULES_SHARE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_time_span {
	uint64_t start_ns, end_ns; /* start < end; the end is not part of the span */
};

/* A zeroed one is an empty set. */
struct ll_spans {
	struct ll_time_span *items;
	size_t count, room;
	bool is_unsettled;
	bool failed;
};

/* Frees the memory of the set, which is then empty. */
void ll_spans_fini(struct ll_spans *spans);

/* Adds an interval; does nothing if end <= start. An interval that continues the last one needs no memory. */
void ll_spans_add(struct ll_spans *spans, uint64_t start_ns, uint64_t end_ns);
/* Sorts the set and joins intervals that touch. */
void ll_spans_settle(struct ll_spans *spans);

/* Returns the length of the whole set. */
uint64_t ll_spans_total_ns(const struct ll_spans *spans);

/* What is in a or b, in both, in a but not in b. *ret is overwritten, and freed by the caller with ll_spans_fini. It
 * must not be a or b. */
void ll_spans_union(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret);
void ll_spans_both(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret);
void ll_spans_without(const struct ll_spans *a, const struct ll_spans *b, struct ll_spans *ret);

/* Returns the time that lies in two or more of the sets. *ret_failed: memory ran out, and the result is too small. */
uint64_t ll_spans_shared_ns(const struct ll_spans *const *sets, size_t count, bool *ret_failed);

/*
 * ---- why a card was idle ----
 *
 * The card is busy while a kernel runs, as NVML counts it. Memsets and copies on the card are kernels of the driver.
 * The part of the busy time in which only communication kernels ran is counted separately, because these kernels wait
 * for others while they run. Each moment of the rest goes to the first of these that applies:
 *
 *     copies    a copy between host and card ran
 *     gate      a launch waited for its turn, its share or room in the queue (`loadline run`)
 *     host      a thread of the program ran on a CPU
 *     io        no thread ran, and one waited for a disk or similar (state D)
 *     waiting   all threads slept: they waited for the network, a timer or each other
 *
 * So the parts of a window add up to the window.
 */

struct ll_idle_view {
	uint64_t start_ns, end_ns;
	/* Settled sets. Time outside the window does not count. */
	const struct ll_spans *kernels;       /* all of them */
	const struct ll_spans *communication; /* those that communicate */
	const struct ll_spans *computation;   /* those that do not */
	const struct ll_spans *copies, *gate, *host, *io;
};

struct ll_idle_split {
	uint64_t window_ns;
	uint64_t busy_ns;
	uint64_t communication_ns; /* the part of busy_ns in which nothing else ran */
	uint64_t copies_ns, gate_ns, host_ns, io_ns, waiting_ns;
};

/* Splits the window. False: no memory; *ret_split is then untouched. */
bool ll_idle_make_split(const struct ll_idle_view *view, struct ll_idle_split *ret_split);

#endif
