/*
 * array.h - arrays and mipmaps. An array's bytes are in rows one after another, without padding; what it takes of
 * the card is more, as hardware lays it out (cuda/array.c).
 */
#ifndef LOADLINE_SIM_CUDA_ARRAY_H
#define LOADLINE_SIM_CUDA_ARRAY_H

#include "cuda/local.h"

struct ll_cu_array {
	struct ll_cu_array3d_descriptor shape; /* of a level: its own */
	uint32_t element_bytes;
	uint64_t row_bytes;   /* width * element_bytes */
	uint64_t plane_bytes; /* row_bytes * max(height, 1) */
	uint64_t bytes;
	char *bytes_at;                       /* NULL: deferred, it has no memory */
	struct ll_cu_mipmapped_array *mipmap; /* of a level; it is not the program's to destroy */
};

/* The array that a handle means, within the local lock; NULL: none. */
struct ll_cu_array *sim_array_of(struct ll_cu_array *handle);

/* A mipmap over memory that is there already; frees nothing of it. NULL with the reason in *ret_status. */
struct ll_cu_mipmapped_array *sim_mipmap_over(struct ll_cu_context *context,
					      const struct ll_cu_array3d_descriptor *shape, unsigned levels,
					      char *bytes_at, uint64_t bytes, ll_cu_result *ret_status);

#endif
