/*
 * copy.h - copies and memsets of every shape: where addresses are, what an operation takes, and how it is queued.
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
	bool is_reachable; /* the card reaches it by itself */
};

/* Finds memory that the card knows. INVALID_VALUE: it knows no such range. */
ll_cu_result sim_place_device(uint64_t address, size_t bytes, struct sim_place *ret_place);

/* Returns where an address is. What the card does not know is taken for host memory. */
struct sim_place sim_place_any(uint64_t address, size_t bytes);

/* Returns in which direction bytes move between two places. */
enum sim_direction sim_direction_of(struct sim_place to, struct sim_place from);

/* Fills in the operation that moves, or fills, this many bytes. */
void sim_copy_describe(struct sim_op *op, const struct ll_cu_context *context, enum sim_direction direction,
		       size_t bytes);

/* Returns whether a block's copy is possible. INVALID_VALUE; INVALID_HANDLE: what it names is no array. */
ll_cu_result sim_copy_check(const struct ll_cu_memcpy3d *copy);

/*
 * Queues a block's copy. Host memory that the card cannot reach is read now, and written before the function returns.
 * is_node: neither, as in a graph, where it is read and written when the copy happens. Returns what sim_copy_check and
 * sim_queue return.
 */
ll_cu_result sim_copy_queue(struct ll_cu_stream *stream, const struct ll_cu_memcpy3d *copy, bool is_async,
			    bool is_node);

/* Returns whether a memset is possible. INVALID_VALUE. */
ll_cu_result sim_fill_check(const struct ll_cu_memset_params *fill);

/* Queues a memset. is_async: false waits for it. Returns what sim_fill_check and sim_queue return. */
ll_cu_result sim_fill_queue(struct ll_cu_stream *stream, const struct ll_cu_memset_params *fill, bool is_async);

#endif
