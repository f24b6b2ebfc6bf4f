/*
 * event_gauge.h - what a timing event takes a card, from rows of events recorded one right after the other.
 *
 * It depends on the machine (doc/facts.md). Where the card was still at the event before when the next one came, the
 * two are apart by what an event takes; else by what the host took, which tells nothing. Whether it was is known from
 * when the host had recorded each of them, as if the card had reached the first at once: if it did not, all the more
 * were waiting. A row of a host that is slower than the card tells nothing, and the next one is asked for. Others'
 * work may have come between two of them, so the middle one counts.
 *
 * One that waits may still have to be fetched from the host's memory: while several programs start, a card of 1.28 us
 * took 2 to 2.5 for many. But no event takes longer than any two of them were apart. So where two were closer than
 * LL_BATCH_EVENT_NS the card is no slow one, and until that is seen rows are wanted. Pure arithmetic.
 */
#ifndef LOADLINE_CONTROL_EVENT_GAUGE_H
#define LOADLINE_CONTROL_EVENT_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_EVENT_ROW = 8, LL_EVENT_GAUGE_ROWS = 10 };

/* Of each event, from an origin of each clock: when the host had recorded it, and when the card reached it. */
struct ll_event_row {
	uint64_t host_ns[LL_EVENT_ROW];
	uint64_t card_ns[LL_EVENT_ROW];
};

struct ll_event_gauge {
	uint64_t taken_ns[LL_EVENT_GAUGE_ROWS * LL_EVENT_ROW];
	uint32_t count;
	uint32_t rows;
	bool is_short; /* less than LL_BATCH_EVENT_NS */
};

void ll_event_gauge_add(struct ll_event_gauge *gauge, const struct ll_event_row *row);

/* Whether another row is worth its time: an event may still be short, and there have not been many. */
bool ll_event_gauge_wants_row(const struct ll_event_gauge *gauge);

/* What an event takes; 0: not known yet, or less than LL_BATCH_EVENT_NS. */
uint64_t ll_event_gauge_ns(const struct ll_event_gauge *gauge);

#endif
