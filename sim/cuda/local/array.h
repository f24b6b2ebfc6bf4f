/*
 * array.h - arrays and mipmaps. An array is a mipmap of one level.
 *
 * An array's bytes are rows without padding. Its memory on the card is larger, because hardware has another layout
 * (array.c).
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_ARRAY_H
#define LOADLINE_SIM_CUDA_LOCAL_ARRAY_H

#include "cuda/local/state.h"

struct ll_cu_array {
	struct ll_cu_array3d_descriptor shape; /* of a level: the level's own shape */
	uint32_t element_bytes;
	uint64_t row_bytes;   /* width * element_bytes */
	uint64_t plane_bytes; /* row_bytes * max(height, 1) */
	uint64_t bytes;
	char *bytes_at;                       /* NULL: deferred, it has no memory */
	struct ll_cu_mipmapped_array *mipmap; /* of a level; the program may not destroy a level */
};

struct ll_cu_mipmapped_array {
	uint32_t magic;
	bool is_array;    /* it has one level, which is the program's array */
	bool is_borrowed; /* the memory belongs to another object */
	unsigned level_count;
	uint64_t taken_bytes; /* on the card, before rounding to blocks */
	uint64_t address;     /* of its memory in the table, or 0 */
	struct ll_cu_context *context;
	struct ll_cu_mipmapped_array *next;
	struct ll_cu_array levels[];
};

/* Makes a mipmap in this thread's context, with its memory unless the shape defers that. is_array: the program gets its
 * one level as an array. INVALID_VALUE, NOT_SUPPORTED (sparse), OUT_OF_MEMORY, and what sim_current says. */
ll_cu_result sim_mipmap_new(const struct ll_cu_array3d_descriptor *shape, unsigned levels, bool is_array,
			    struct ll_cu_mipmapped_array **ret_mipmap);

/* Makes a mipmap over existing memory, which it does not free later. NULL: ret_status has the reason. */
struct ll_cu_mipmapped_array *sim_mipmap_over(struct ll_cu_context *context,
					      const struct ll_cu_array3d_descriptor *shape, unsigned levels,
					      char *bytes_at, uint64_t bytes, ll_cu_result *ret_status);

/* Frees a mipmap after waiting for its context's work. It releases the local lock meanwhile. */
void sim_mipmap_destroy(struct ll_cu_mipmapped_array *mipmap);

/* Returns whether a handle is a mipmap. */
bool sim_is_mipmap(const struct ll_cu_mipmapped_array *handle);

/* Returns the array that a handle means, or NULL. */
struct ll_cu_array *sim_array_of(struct ll_cu_array *handle);

/* Frees the arrays of a context that is destroyed. Their memory is freed with the context's other memory. */
void sim_arrays_forget(const struct ll_cu_context *context);

#endif
