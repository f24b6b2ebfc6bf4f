/*
 * event_gauge.h - measures how long a timing event keeps a card, from rows of events that were recorded directly one
 * after the other.
 *
 * The time depends on the machine (doc/facts.md). If an event waited in the queue while the card processed the event
 * before, the distance of the two on the card's clock is that time. Otherwise the distance is time of the host, and has
 * no meaning here. An event waited if the host recorded it before the card reached the event before. To compare the two
 * clocks, the card is assumed to have reached the first event at once. If it did not, even more events waited. If the
 * host was slower than the card, a row has no usable event, and another row is needed. Work of other programs may lie
 * between two events, so the median counts.
 *
 * The card may still have to read a waiting event from the host's memory. While several programs start, many events
 * took 2 to 2.5 us on a card that needs 1.28 us. But an event never takes longer than the smallest distance. So if two
 * events were closer than LL_BATCH_EVENT_NS, the card is not a slow one. Until such a pair is seen, further rows are
 * needed.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_RULES_SHARE_EVENT_GAUGE_H
#define LOADLINE_RULES_SHARE_EVENT_GAUGE_H

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
