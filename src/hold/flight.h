/*
 * flight.h - the kernels in flight: launched and not yet read back.
 *
 * For each it keeps what the host knew at its launch. When the kernel has written its record, the two give one run,
 * with a judgement whether foreign work ran. Kernels of a payload run one after another in launch order. One thread at
 * a time.
 */
#ifndef LOADLINE_HOLD_FLIGHT_H
#define LOADLINE_HOLD_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "hold/pacer.h"
#include "hold/payload.h"
#include "rules/hold/contention.h"
#include "rules/share/clock_fit.h"

struct ll_flight_slot {
	uint64_t submit_ns;    /* host clock, before the launch call */
	uint64_t submitted_ns; /* host clock, after it */
	uint64_t length_ns;
	uint64_t due_ns; /* host clock: when the kernel should end */
	bool is_first;   /* the first after a pause */
};

struct ll_flight {
	const volatile struct ll_record *records;
	struct ll_flight_slot slots[LL_RECORD_SLOTS];
	uint32_t next;        /* sequence of the next launch, from 1 */
	uint32_t oldest;      /* the first sequence not yet read back; equal to next if none is in flight */
	uint64_t last_end_ns; /* card's clock */
	uint64_t last_due_ns; /* host clock */
	struct ll_clock_fit fit;
};

struct ll_flight_run {
	struct ll_interval interval;
	uint64_t unused_ns; /* the part of its length that a kernel did not run because it ended early */
	struct ll_contention contention;
};

void ll_flight_init(struct ll_flight *flight, const volatile struct ll_record *records);

/* Returns the sequence of the next launch. */
uint32_t ll_flight_next_sequence(const struct ll_flight *flight);

/* Returns how many kernels are in flight. */
uint32_t ll_flight_outstanding(const struct ll_flight *flight);

/* Returns the card's time after which a kernel that is submitted now counts as late: when it can start behind the
 * queued kernels, plus allowed_ns. 0: the two clocks are not fitted yet. */
uint64_t ll_flight_late_after(const struct ll_flight *flight, uint64_t submit_ns, uint64_t allowed_ns);

/* Notes that the kernel of ll_flight_next_sequence() was launched between these two host times. is_first: no own kernel
 * ran just before, so the card may have to switch contexts. */
void ll_flight_launched(struct ll_flight *flight, uint64_t submit_ns, uint64_t submitted_ns, uint64_t length_ns,
			bool is_first);

/* Takes the oldest kernel if it has finished. False: it has not, or none is in flight. */
bool ll_flight_collect(struct ll_flight *flight, const struct ll_contention_limits *limits,
		       struct ll_flight_run *ret_run);

/* Returns by how much the oldest kernel in flight is past its due end; 0: it is not, or none is in flight. */
uint64_t ll_flight_overdue_ns(const struct ll_flight *flight, uint64_t now_ns);

#endif
