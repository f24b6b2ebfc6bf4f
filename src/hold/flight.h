/*
 * flight.h - the kernels that are on their way: launched, not yet read back.
 *
 * Keeps what the host knew at each launch beside the record the kernel will write, and turns a finished record into one
 * judged run. Kernels of a payload run one after another in launch order.
 */
#ifndef LOADLINE_HOLD_FLIGHT_H
#define LOADLINE_HOLD_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "control/clock_fit.h"
#include "control/contention.h"
#include "hold/pacer.h"
#include "hold/payload.h"

struct ll_flight_slot {
	uint64_t submit_ns;
	uint64_t submitted_ns;
	uint64_t length_ns;
	uint64_t due_ns; /* host clock: when it should have ended */
	bool is_first;   /* the first after a pause */
};

struct ll_flight {
	const volatile struct ll_record *records;
	struct ll_flight_slot slots[LL_RECORD_SLOTS];
	uint32_t next;        /* sequence of the next launch, from 1 */
	uint32_t oldest;      /* first sequence not yet read back; equal to next when none is out */
	uint64_t last_end_ns; /* card */
	uint64_t last_due_ns;
	struct ll_clock_fit fit;
};

struct ll_flight_run {
	struct ll_interval interval;
	uint64_t unused_ns; /* what it gave up of its length by ending early */
	struct ll_contention contention;
};

void ll_flight_init(struct ll_flight *flight, const volatile struct ll_record *records);

uint32_t ll_flight_next_sequence(const struct ll_flight *flight);
uint32_t ll_flight_outstanding(const struct ll_flight *flight);

/* Card time after which a kernel submitted now is late by more than allowed_ns, behind what is queued; 0 without a fit.
 */
uint64_t ll_flight_late_after(const struct ll_flight *flight, uint64_t submit_ns, uint64_t allowed_ns);

/* Notes that the kernel of ll_flight_next_sequence() was launched between these two host times. is_first: nothing of
 * ours ran just before, so the card may have to switch contexts. */
void ll_flight_launched(struct ll_flight *flight, uint64_t submit_ns, uint64_t submitted_ns, uint64_t length_ns,
			bool is_first);

/* Takes the oldest kernel if it has finished. False: it has not, or none is out. */
bool ll_flight_collect(struct ll_flight *flight, const struct ll_contention_limits *limits,
		       struct ll_flight_run *ret_run);

/* By how much the oldest outstanding kernel is past its due end, 0 when it is not. */
uint64_t ll_flight_overdue_ns(const struct ll_flight *flight, uint64_t now_ns);

#endif
