/*
 * activity.h - records of operations on the simulated card, for a profiler in the same process. The times are those of
 * the model.
 *
 * NVIDIA's CUPTI gets its records from inside the driver. The library that replaces CUPTI in tests gets them here.
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
	uint32_t device, context, stream; /* numbers; stream is 0 for allocations and frees */
	uint32_t correlation;             /* in the order of the calls, from 1 on */
	uint64_t start_ns, end_ns;        /* CLOCK_MONOTONIC; equal for allocations and frees */
	uint64_t bytes, address;
	uint32_t grid[3], block[3], dynamic_shared_bytes;
	uint32_t is_from_card, is_to_card; /* of copies: whether the source, the target is on the card */
	char name[128];                    /* of kernels; cut if it is longer */
};

typedef void (*sim_observer)(const struct sim_activity *activity);

/* Sets the function that gets each record; NULL: none. It is called with the library's lock held, and must not call
 * CUDA. */
__attribute__((visibility("default"))) void loadline_sim_observe(sim_observer fn);

#endif
