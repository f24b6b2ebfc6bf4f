#include "hold/flight.h"

#include <string.h>

void ll_flight_init(struct ll_flight *flight, const volatile struct ll_record *records)
{
	*flight = (struct ll_flight){.records = records, .next = 1, .oldest = 1};
}

uint32_t ll_flight_next_sequence(const struct ll_flight *flight)
{
	return flight->next;
}

uint32_t ll_flight_outstanding(const struct ll_flight *flight)
{
	return flight->next - flight->oldest;
}

uint64_t ll_flight_late_after(const struct ll_flight *flight, uint64_t submit_ns, uint64_t allowed_ns)
{
	if (!flight->fit.has_fit)
		return 0;
	uint64_t due_ns =
	    ll_flight_outstanding(flight) > 0 && flight->last_due_ns > submit_ns ? flight->last_due_ns : submit_ns;
	return ll_clock_fit_to_card_latest(&flight->fit, due_ns) + allowed_ns;
}

void ll_flight_launched(struct ll_flight *flight, uint64_t submit_ns, uint64_t submitted_ns, uint64_t length_ns,
			bool is_first)
{
	uint64_t start_ns = flight->last_due_ns > submitted_ns ? flight->last_due_ns : submitted_ns;
	flight->last_due_ns = start_ns + length_ns;
	flight->slots[flight->next % LL_RECORD_SLOTS] = (struct ll_flight_slot){
	    .submit_ns = submit_ns,
	    .submitted_ns = submitted_ns,
	    .length_ns = length_ns,
	    .due_ns = flight->last_due_ns,
	    .is_first = is_first,
	};
	flight->next++;
}

bool ll_flight_collect(struct ll_flight *flight, const struct ll_contention_limits *limits,
		       struct ll_flight_run *ret_run)
{
	if (flight->oldest == flight->next)
		return false;
	const volatile struct ll_record *record = &flight->records[flight->oldest % LL_RECORD_SLOTS];
	/* The card writes sequence last, so the fields that are read after it are complete. */
	if (__atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE) != flight->oldest)
		return false;

	const struct ll_flight_slot *slot = &flight->slots[flight->oldest % LL_RECORD_SLOTS];
	struct ll_kernel_trace trace = {
	    .submit_ns = slot->submit_ns,
	    .submitted_ns = slot->submitted_ns,
	    .start_ns = record->start_ns,
	    .end_ns = record->end_ns,
	    .gap_ns = record->gap_ns,
	    .previous_end_ns = flight->last_end_ns,
	    .is_first = slot->is_first,
	};
	/* The fit learns from this kernel only after it has judged it. Otherwise a late start would count as normal. */
	struct ll_contention contention = ll_contention_judge(&trace, &flight->fit, limits);
	bool was_queued = trace.previous_end_ns > 0 && flight->fit.has_fit &&
			  trace.previous_end_ns > ll_clock_fit_to_card(&flight->fit, trace.submit_ns);
	if (!was_queued)
		ll_clock_fit_add(&flight->fit, trace.submit_ns, trace.start_ns);
	flight->last_end_ns = trace.end_ns;
	flight->oldest++;

	uint64_t used_ns = trace.end_ns - trace.start_ns;
	uint32_t flags = record->flags;
	*ret_run = (struct ll_flight_run){
	    .interval = {.start_ns = ll_clock_fit_to_host(&flight->fit, trace.start_ns),
			 .end_ns = ll_clock_fit_to_host(&flight->fit, trace.end_ns),
			 .card_start_ns = trace.start_ns,
			 .card_end_ns = trace.end_ns,
			 .flags = flags},
	    .unused_ns = flags != 0 && used_ns < slot->length_ns ? slot->length_ns - used_ns : 0,
	    .contention = contention,
	};
	return true;
}

uint64_t ll_flight_overdue_ns(const struct ll_flight *flight, uint64_t now_ns)
{
	if (flight->oldest == flight->next)
		return 0;
	uint64_t due_ns = flight->slots[flight->oldest % LL_RECORD_SLOTS].due_ns;
	return now_ns > due_ns ? now_ns - due_ns : 0;
}
