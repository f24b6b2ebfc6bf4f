#include "rules/share/event_gauge.h"

#include "rules/share/batch.h"

/* The scatter of the time at which an event reaches the card. */
#define QUEUED_NS 300
/* A longer distance has other work in it. The longest event that was seen took 3 us (doc/facts.md). */
#define EVENT_MOST_NS 5000
enum { LEAST = 3 };

static bool was_waiting(const struct ll_event_row *row, unsigned i)
{
	return row->card_ns[i - 1] - row->card_ns[0] >= row->host_ns[i] - row->host_ns[0] + QUEUED_NS;
}

/* Keeps taken_ns in order. */
static void insert_sorted(struct ll_event_gauge *gauge, uint64_t ns)
{
	uint32_t at = gauge->count++;
	for (; at && gauge->taken_ns[at - 1] > ns; at--)
		gauge->taken_ns[at] = gauge->taken_ns[at - 1];
	gauge->taken_ns[at] = ns;
}

void ll_event_gauge_add(struct ll_event_gauge *gauge, const struct ll_event_row *row)
{
	if (gauge->rows == LL_EVENT_GAUGE_ROWS)
		return;
	gauge->rows++;
	for (unsigned i = 2; i < LL_EVENT_ROW; i++) {
		uint64_t ns = row->card_ns[i] - row->card_ns[i - 1];
		gauge->is_short |= ns < LL_BATCH_EVENT_NS;
		if (was_waiting(row, i) && ns <= EVENT_MOST_NS)
			insert_sorted(gauge, ns);
	}
}

bool ll_event_gauge_wants_row(const struct ll_event_gauge *gauge)
{
	return !gauge->is_short && gauge->rows < LL_EVENT_GAUGE_ROWS;
}

uint64_t ll_event_gauge_ns(const struct ll_event_gauge *gauge)
{
	return gauge->count < LEAST || gauge->is_short ? 0 : gauge->taken_ns[gauge->count / 2];
}
