#include "rules/share/busy.h"

#include <string.h>

enum { JOINED = LL_BUSY_SPANS / 2 }; /* number of the oldest spans that are joined if there are too many */

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns how much of start..end was busy, by the span. */
static uint64_t shared_ns(const struct ll_busy_span *span, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from_ns = most_of(span->start_ns, start_ns), until_ns = least_of(span->end_ns, end_ns);
	uint64_t length_ns = span->end_ns - span->start_ns, ns = until_ns > from_ns ? until_ns - from_ns : 0;
	return ns == length_ns ? span->busy_ns : (uint64_t)((double)ns * ((double)span->busy_ns / (double)length_ns));
}

static void join_oldest(struct ll_busy *busy)
{
	for (uint32_t i = 0; i < JOINED / 2; i++) {
		const struct ll_busy_span *one = &busy->spans[2 * i], *next = one + 1;
		busy->spans[i] = (struct ll_busy_span){one->start_ns, next->end_ns, one->busy_ns + next->busy_ns};
	}
	busy->count -= JOINED / 2;
	memmove(&busy->spans[JOINED / 2], &busy->spans[JOINED], (busy->count - JOINED / 2) * sizeof busy->spans[0]);
}

/* Replaces the spans first..last-1 by one. */
static void replace_spans(struct ll_busy *busy, uint32_t first, uint32_t last, struct ll_busy_span span)
{
	memmove(&busy->spans[first + 1], &busy->spans[last], (busy->count - last) * sizeof span);
	busy->spans[first] = span;
	busy->count = busy->count + 1 - (last - first);
}

uint64_t ll_busy_add(struct ll_busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	if (busy->count == LL_BUSY_SPANS)
		join_oldest(busy);
	uint32_t last = busy->count;
	while (last && busy->spans[last - 1].start_ns > end_ns)
		last--;
	struct ll_busy_span span = {.start_ns = start_ns, .end_ns = end_ns};
	uint64_t known_ns = 0;
	uint32_t first = last;
	for (; first && busy->spans[first - 1].end_ns >= start_ns; first--) {
		const struct ll_busy_span *before = &busy->spans[first - 1];
		known_ns += shared_ns(before, start_ns, end_ns);
		span.start_ns = least_of(span.start_ns, before->start_ns);
		span.end_ns = most_of(span.end_ns, before->end_ns);
		span.busy_ns += before->busy_ns;
	}
	uint64_t fresh_ns = end_ns - start_ns > known_ns ? end_ns - start_ns - known_ns : 0;
	span.busy_ns = least_of(span.busy_ns + fresh_ns, span.end_ns - span.start_ns);
	replace_spans(busy, first, last, span);
	return fresh_ns;
}
