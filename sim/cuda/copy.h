/*
 * copy.h - what copies and memsets of every shape share: where addresses are, and what an operation takes.
 *
 * All within the local lock.
 */
#ifndef LOADLINE_SIM_CUDA_COPY_H
#define LOADLINE_SIM_CUDA_COPY_H

#include "abi/cuda_graph.h"
#include "cuda/local.h"

enum sim_direction { SIM_TO_CARD, SIM_FROM_CARD, SIM_ON_CARD };

/* An address of the card, or of the host: where its bytes are. is_reachable: the card reaches it by itself. */
struct sim_place {
	uint64_t address;
	char *at;
	bool is_device;
	bool is_reachable;
};

/* INVALID_VALUE: the card knows no such range. */
ll_cu_result sim_place_device(uint64_t address, size_t bytes, struct sim_place *ret_place);
/* What is not known to the card is taken for host memory. */
struct sim_place sim_place_any(uint64_t address, size_t bytes);

/* The operation that moves (or fills) this many bytes. */
void sim_copy_describe(struct sim_op *op, const struct ll_cu_context *context, enum sim_direction direction,
		       size_t bytes);
enum sim_direction sim_direction_of(struct sim_place to, struct sim_place from);

/*
 * Queues a block's copy. Host memory that the card cannot reach is read now and written before the call comes back
 * (is_node: neither, as in a graph, where it is read and written when the copy happens).
 */
ll_cu_result sim_copy_queue(struct ll_cu_stream *stream, const struct ll_cu_memcpy3d *copy, bool is_async,
			    bool is_node);
/* INVALID_VALUE, INVALID_HANDLE (arrays) or success. */
ll_cu_result sim_copy_check(const struct ll_cu_memcpy3d *copy);

/* A whole call: takes the local lock, queues the copy in that stream of the current context or captures it. */
ll_cu_result sim_copy_block(const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *handle, bool is_async);

ll_cu_result sim_fill_queue(struct ll_cu_stream *stream, const struct ll_cu_memset_params *fill, bool is_async);
ll_cu_result sim_fill_check(const struct ll_cu_memset_params *fill);

#endif
