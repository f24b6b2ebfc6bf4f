/*
 * copy.h - copies and memsets of every shape: finding the bytes, describing the operation, and queueing it.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_COPY_H
#define LOADLINE_SIM_CUDA_LOCAL_COPY_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

enum sim_direction { SIM_TO_CARD, SIM_FROM_CARD, SIM_ON_CARD };

/* An address of the card, or of the host: where its bytes are. */
struct sim_place {
	uint64_t address;
	char *at;
	bool is_device;
	bool is_reachable; /* the card can access it */
};

/* Finds memory that the card knows. INVALID_VALUE: there is no such range. */
ll_cu_result sim_place_device(uint64_t address, size_t bytes, struct sim_place *ret_place);

/* Returns the place of an address. If the card does not know it, it counts as host memory. */
struct sim_place sim_place_any(uint64_t address, size_t bytes);

/* Returns in which direction bytes move between two places. */
enum sim_direction sim_direction_of(struct sim_place to, struct sim_place from);

/* Fills in the operation that moves, or fills, this many bytes. */
void sim_copy_describe(struct sim_op *op, const struct ll_cu_context *context, enum sim_direction direction,
		       size_t bytes);

/* Checks whether a block's copy is possible. INVALID_VALUE; INVALID_HANDLE: a handle is not an array. */
ll_cu_result sim_copy_check(const struct ll_cu_memcpy3d *copy);

/*
 * Queues a block's copy. Host memory that the card cannot access is read now, or written before the function returns.
 * is_node: it is read and written when the copy runs, as in a graph. Returns the status of sim_copy_check or sim_queue.
 */
ll_cu_result sim_copy_queue(struct ll_cu_stream *stream, const struct ll_cu_memcpy3d *copy, bool is_async,
			    bool is_node);

/* Returns whether a memset is possible. INVALID_VALUE. */
ll_cu_result sim_fill_check(const struct ll_cu_memset_params *fill);

/* Queues a memset. is_async false: waits for it. Returns the status of sim_fill_check or sim_queue. */
ll_cu_result sim_fill_queue(struct ll_cu_stream *stream, const struct ll_cu_memset_params *fill, bool is_async);

#endif
