/*
 * probe_world.h - made-up kernels for the tests of what the probe makes of them. Times in microseconds.
 */
#ifndef LOADLINE_TESTS_UNIT_PROBE_WORLD_H
#define LOADLINE_TESTS_UNIT_PROBE_WORLD_H

#include "probe/probe.h"

#define US UINT64_C(1000)
/* The card's clock counts from some day long ago. */
#define EPOCH_NS UINT64_C(1790000000000000000)

static inline struct ll_probe_kernel kernel_of(uint32_t party, uint64_t start_us, uint64_t end_us)
{
	return (struct ll_probe_kernel){
	    .party = party,
	    .blocks = 1,
	    .start_ns = EPOCH_NS + start_us * US,
	    .end_ns = EPOCH_NS + end_us * US,
	    .step_ns = 32,
	    .sm_count = 1,
	};
}

static inline void interrupt(struct ll_probe_kernel *kernel, uint64_t at_us, uint64_t length_us)
{
	kernel->holes[kernel->hole_count++] =
	    (struct ll_probe_hole){.at_ns = EPOCH_NS + at_us * US, .length_ns = length_us * US, .is_cut = true};
}

#endif
