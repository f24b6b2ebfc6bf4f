/*
 * event_gauge.h - how long a timing event keeps a card, from rows of events that were recorded one right after the
 * other.
 *
 * The time depends on the machine (doc/facts.md). If an event waited while the card was at the one before, their
 * distance on the card's clock is that time. Otherwise the distance is the host's time, and says nothing. An event
 * waited if the host recorded it before the card reached the one before. To compare the two clocks, the card is taken
 * to have reached the first event at once; if it did not, even more events waited. A row from a host that is slower
 * than the card says nothing, and another row is wanted. Other programs' work may lie between two events, so the median
 * counts.
 *
 * A waiting event may still have to be fetched from the host's memory. While several programs start, many events of a
 * card that needs 1.28 us took 2 to 2.5 us. But an event never takes longer than the smallest distance. So if two
 * events were closer than LL_BATCH_EVENT_NS, the card is not a slow one; until then further rows are wanted.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_CONTROL_EVENT_GAUGE_H
#define LOADLINE_CONTROL_EVENT_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

enum { LL_EVENT_ROW = 8, LL_EVENT_GAUGE_ROWS = 10 };

/* When the host had recorded each event, and when the card reached it. Each clock has an origin of its own. */
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

/* Adds a row. Rows after LL_EVENT_GAUGE_ROWS are ignored. */
void ll_event_gauge_add(struct ll_event_gauge *gauge, const struct ll_event_row *row);

/* Whether another row is worth its time: no short distance was seen yet, and there were not many rows. */
bool ll_event_gauge_wants_row(const struct ll_event_gauge *gauge);

/* Returns how long an event keeps the card; 0: not known yet, or less than LL_BATCH_EVENT_NS. */
uint64_t ll_event_gauge_ns(const struct ll_event_gauge *gauge);

#endif
