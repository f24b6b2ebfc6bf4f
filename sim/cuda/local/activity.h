/*
 * activity.h - what a profiler learns of the simulated card: an observer in the process is told of everything that has
 * run for it, with the times of the model.
 *
 * NVIDIA's profiling library knows the driver's inside; one that stands in for it in tests knows this.
 */
#ifndef LOADLINE_SIM_CUDA_ACTIVITY_H
#define LOADLINE_SIM_CUDA_ACTIVITY_H

#include <stdint.h>

enum sim_activity_kind {
	SIM_ACTIVITY_KERNEL = 1,
	SIM_ACTIVITY_COPY,
	SIM_ACTIVITY_MEMSET,
	SIM_ACTIVITY_ALLOCATE,
	SIM_ACTIVITY_FREE,
};

struct sim_activity {
	uint32_t kind;
	uint32_t device, context, stream; /* numbers; the stream of memory is 0 */
	uint32_t correlation;             /* in the order of the calls, from 1 on */
	uint64_t start_ns, end_ns;        /* CLOCK_MONOTONIC; equal for memory */
	uint64_t bytes, address;
	uint32_t grid[3], block[3], dynamic_shared_bytes;
	uint32_t is_from_card, is_to_card; /* copies */
	char name[128];                    /* kernels; cut */
};

typedef void (*sim_observer)(const struct sim_activity *activity);

/* Sets the observer. NULL: nobody observes any more. The observer is called with the library's lock held, and must not
 * call CUDA. */
__attribute__((visibility("default"))) void loadline_sim_observe(sim_observer fn);

#endif
