/*
 * work.h - describes the work that a call gives the card, as its hook sees it, and reads the columns WORK and COPY of
 * abi/cuda.def.
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
struct ll_copy_sides ll_copy_sides_of(enum ll_cu_memory_type to_type, ll_cu_deviceptr to,
				      enum ll_cu_memory_type from_type, ll_cu_deviceptr from);
#define LL_COPY_SIDES(copy)                                                                                            \
	((copy) ? ll_copy_sides_of((copy)->to_type, (copy)->to_device, (copy)->from_type, (copy)->from_device)         \
		: (struct ll_copy_sides){false, false})
struct ll_copy_sides ll_copy_sides_of_lines(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count);
struct ll_copy_sides ll_copy_sides_of_blocks(const struct ll_cu_copy3d_op *ops, size_t count);

/* Return the sum of the bytes of all copies of a batch. */
uint64_t ll_copy_bytes_of_lines(const size_t *bytes, size_t count);

/*
 * What a row of abi/cuda.def gives the card: WORK(stream, kind), COPY(stream, shape). LL_GIVES_##kind is `make, one,
 * two`, and make(symbol, one, two) is the struct ll_work, as an expression of the function's parameters. Of a copy, one
 * are its sides, which the driver may be asked for, and two its bytes.
 */
#define LL_GIVES_KERNEL LL_MAKE_KERNEL, ,
#define LL_GIVES_CONFIG LL_MAKE_CONFIG, ,
#define LL_GIVES_OLD_KERNEL LL_MAKE_OLD_KERNEL, ,
#define LL_GIVES_MEMSET(elements, bits) LL_MAKE_MEMSET, elements, bits
#define LL_GIVES_WITHIN ll_work_of_copy, ((struct ll_copy_sides){true, true}), bytes
#define LL_GIVES_ADDRESSES(to, from, bytes) ll_work_of_copy, ll_copy_sides_of_addresses(to, from), bytes
#define LL_GIVES_ROWS(copy) ll_work_of_copy, LL_COPY_SIDES(copy), LL_ROWS_BYTES(copy)
#define LL_GIVES_BOX(copy) ll_work_of_copy, LL_COPY_SIDES(copy), LL_BOX_BYTES(copy)
#define LL_GIVES_PEER_BOX(copy) ll_work_of_copy, LL_COPY_SIDES(copy), LL_BOX_BYTES(copy)
#define LL_GIVES_LINES(to, from, bytes, count)                                                                         \
	ll_work_of_copy, ll_copy_sides_of_lines(to, from, count), ll_copy_bytes_of_lines(bytes, count)
/* The driver runs a batch as one operation of its stream. The hints of a batch do not say where its copies run. */
#define LL_GIVES_BLOCKS(ops, count) ll_work_of_copy, ll_copy_sides_of_blocks(ops, count), 0

#define LL_ROWS_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height : 0)
#define LL_BOX_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height * (copy)->depth : 0)

/* The parameters of launch functions that do not take a struct. */
#define LL_MAKE_KERNEL(its_symbol, one, two)                                                                           \
	ll_work_of_kernel(its_symbol, function,                                                                        \
			  &(struct ll_cu_launch_config){.grid_x = grid_x,                                              \
							.grid_y = grid_y,                                              \
							.grid_z = grid_z,                                              \
							.block_x = block_x,                                            \
							.block_y = block_y,                                            \
							.block_z = block_z,                                            \
							.shared_bytes = shared_bytes})
#define LL_MAKE_CONFIG(its_symbol, one, two) ll_work_of_kernel(its_symbol, function, config)
#define LL_MAKE_OLD_KERNEL(its_symbol, one, two) ((struct ll_work){.symbol = its_symbol, .kind = LL_WORK_KERNEL})
/* Memsets of the card's memory are kernels of the driver. */
#define LL_MAKE_MEMSET(its_symbol, elements, bits)                                                                     \
	((struct ll_work){.symbol = its_symbol,                                                                        \
			  .kind = LL_WORK_MEMSET,                                                                      \
			  .bytes = (uint64_t)(elements) * ((bits) / 8),                                                \
			  .is_to_card = true})

#endif
