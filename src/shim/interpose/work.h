/*
 * work.h - describes the work that a call gives the card, as its hook sees it. work.def has a row with the parameters
 * for each driver function that gives the card work.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_WORK_H
#define LOADLINE_SHIM_INTERPOSE_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_copy.h"
#include "abi/cuda_launch.h"

enum ll_work_kind { LL_WORK_KERNEL, LL_WORK_GRAPH, LL_WORK_MEMSET, LL_WORK_COPY };

struct ll_work {
	const char *symbol; /* the driver's function, a literal; NULL: the call has no work for the card */
	enum ll_work_kind kind;
	const struct ll_cu_function *function; /* for a kernel: its function; NULL: the call does not name it */
	unsigned grid[3], block[3], dynamic_shared_bytes;
	uint64_t bytes; /* for a memset or a copy: its size; 0: not known */
	bool is_to_card, is_from_card;
};

/* Describes a kernel. If the driver's function has no config parameter, the hook makes one from its parameters. config
 * NULL: the program gave none. */
static inline struct ll_work ll_work_of_kernel(const char *symbol, const struct ll_cu_function *function,
					       const struct ll_cu_launch_config *config)
{
	if (!config)
		return (struct ll_work){.symbol = NULL};
	return (struct ll_work){
	    .symbol = symbol,
	    .kind = LL_WORK_KERNEL,
	    .function = function,
	    .grid = {config->grid_x, config->grid_y, config->grid_z},
	    .block = {config->block_x, config->block_y, config->block_z},
	    .dynamic_shared_bytes = config->shared_bytes,
	};
}

/* The sides of a copy that are on a card. */
struct ll_copy_sides {
	bool is_to_card, is_from_card;
};

static inline struct ll_work ll_work_of_copy(const char *symbol, struct ll_copy_sides sides, uint64_t bytes)
{
	return (struct ll_work){.symbol = symbol,
				.kind = LL_WORK_COPY,
				.bytes = bytes,
				.is_to_card = sides.is_to_card,
				.is_from_card = sides.is_from_card};
}

static inline bool ll_copy_is_within_cards(struct ll_copy_sides sides)
{
	return sides.is_to_card && sides.is_from_card;
}

/*
 * Return which sides of a copy are on a card, for each kind of description. For NULL neither side is. These functions
 * call the driver. Managed memory counts as memory of the card. A batch counts as having both sides on a card if one of
 * its copies has. Otherwise the first copy decides the direction of the batch.
 */
struct ll_copy_sides ll_copy_sides_of_addresses(ll_cu_deviceptr to, ll_cu_deviceptr from);
struct ll_copy_sides ll_copy_sides_of_rows(const struct ll_cu_memcpy2d *copy);
struct ll_copy_sides ll_copy_sides_of_box(const struct ll_cu_memcpy3d *copy);
struct ll_copy_sides ll_copy_sides_of_peer_box(const struct ll_cu_memcpy3d_peer *copy);
struct ll_copy_sides ll_copy_sides_of_lines(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count);
struct ll_copy_sides ll_copy_sides_of_blocks(const struct ll_cu_copy3d_op *ops, size_t count);

/* Return the sum of the bytes of all copies of a batch. */
uint64_t ll_copy_bytes_of_lines(const size_t *bytes, size_t count);

#endif
