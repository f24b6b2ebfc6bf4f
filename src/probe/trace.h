/*
 * trace.h - what a kernel of the probe writes down about itself, and the account of it that everything else works with.
 *
 * All times are the card's own clock (%globaltimer, nanoseconds of an unspecified epoch), so kernels of different
 * processes can be compared. The clock's step is 32 ns on an H200 (doc/facts.md) and up to 1 us on other cards: the
 * smallest step that a kernel saw is in its account.
 *
 * Every block writes its start, its end and its SM. Of each round of blocks, which is as many as fit on the card at
 * once, the first also lists its gaps: holes between two reads of the clock in which it was not on the card.
 */
#ifndef LOADLINE_PROBE_TRACE_H
#define LOADLINE_PROBE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_err;

enum {
	LL_PROBE_GAPS = 256, /* listed; more are only counted */
	LL_PROBE_SMS = 512,  /* that can be told apart */
	LL_PROBE_AWAY_US =
	    10, /* a longer hole is time away. Full SMs see holes of 2 us, a switch takes 130 (facts.md) */
};

/* ---- as kernels/timeline.ptx writes them ---- */

struct ll_probe_gap {
	uint64_t at_ns;
	uint64_t length_ns;
};

struct ll_probe_trace {
	uint64_t max_gap_ns; /* the largest hole, listed or not */
	uint64_t step_ns;    /* the smallest step of the clock */
	uint32_t gap_count;
	uint32_t unused;
	struct ll_probe_gap gaps[LL_PROBE_GAPS];
};

struct ll_probe_block {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t sm;
	uint32_t is_done;
};

_Static_assert(offsetof(struct ll_probe_trace, gaps) == 24 && sizeof(struct ll_probe_gap) == 16 &&
		   sizeof(struct ll_probe_block) == 24 && sizeof(struct ll_probe_trace) == 4120,
	       "the kernels write this layout");

/* ---- the account ---- */

/* Time between a kernel's start and its end in which no block of it was on the card. */
struct ll_probe_hole {
	uint64_t at_ns;
	uint64_t length_ns;
	bool is_cut; /* blocks were interrupted; else those that had run had ended, and the next had not begun */
};

struct ll_probe_kernel {
	uint32_t party; /* who launched it: a stream, a thread or a process */
	uint32_t blocks;
	uint64_t start_ns; /* of its first block */
	uint64_t end_ns;   /* of its last */
	uint64_t max_gap_ns;
	uint64_t step_ns;
	uint32_t hole_count; /* may be more than are listed */
	uint32_t sm_count;   /* different SMs that its blocks were on */
	uint64_t sms[LL_PROBE_SMS / 64];
	struct ll_probe_hole holes[LL_PROBE_GAPS];
};

/* Returns how many of the kernel's holes are listed. */
static inline uint32_t ll_probe_listed(const struct ll_probe_kernel *kernel)
{
	return kernel->hole_count < LL_PROBE_GAPS ? kernel->hole_count : LL_PROBE_GAPS;
}

/* What the card wrote: a trace for each round of blocks, a record for each block. */
struct ll_probe_records {
	const struct ll_probe_trace *traces;
	const struct ll_probe_block *blocks;
	uint32_t trace_count, block_count;
};

/* Makes the account of a kernel from its records. -EIO: a block has written nothing, or impossible values. -ENOMEM. */
int ll_probe_kernel_read(const struct ll_probe_records *records, uint32_t party, struct ll_probe_kernel *ret_kernel,
			 struct ll_err *err);

#endif
