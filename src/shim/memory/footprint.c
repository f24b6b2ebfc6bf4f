#include "shim/memory/footprint.h"

#include <stdbool.h>

enum { SMALL_STEP_BYTES = 512, TILE_ROW_BYTES = 64, TILE_ROWS = 8, TILE_MOST_ROWS = 128, TILE_MOST_PLANES = 16 };
#define SMALL_MOST_BYTES UINT64_C(0x100000)

uint64_t ll_footprint_round(uint64_t bytes, uint64_t unit)
{
	uint64_t up;
	return __builtin_add_overflow(bytes, unit - 1, &up) ? UINT64_MAX : up & ~(unit - 1);
}

static uint64_t multiply_capped(uint64_t a, uint64_t b)
{
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t ll_footprint_plain(uint64_t bytes)
{
	return ll_footprint_round(bytes, bytes <= SMALL_MOST_BYTES ? SMALL_STEP_BYTES : LL_FOOTPRINT_BLOCK_BYTES);
}

uint64_t ll_footprint_pitched(uint64_t width_bytes, uint64_t height)
{
	return ll_footprint_plain(multiply_capped(ll_footprint_round(width_bytes, SMALL_STEP_BYTES), height));
}

/* Returns the bytes per channel. Formats other than the plain ones (planar video, compressed blocks) have at most four.
 */
static uint64_t channel_bytes(enum ll_cu_array_format format)
{
	switch (format) {
	case LL_CU_AD_FORMAT_UNSIGNED_INT8:
	case LL_CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case LL_CU_AD_FORMAT_UNSIGNED_INT16:
	case LL_CU_AD_FORMAT_SIGNED_INT16:
	case LL_CU_AD_FORMAT_HALF:
		return 2;
	default:
		return 4;
	}
}

static uint64_t round_to_tile(uint64_t value, uint64_t least, uint64_t most)
{
	uint64_t size = least;
	while (size < most && size < value)
		size *= 2;
	return ll_footprint_round(value, size);
}

static uint64_t at_level(uint64_t value, unsigned level)
{
	return value == 0 || level >= 64 ? value != 0 : value >> level ? value >> level : 1;
}

static uint64_t level_bytes(const struct ll_cu_array3d_descriptor *shape, unsigned level)
{
	bool is_layered = shape->flags & (LL_CUDA_ARRAY3D_LAYERED | LL_CUDA_ARRAY3D_CUBEMAP);
	uint64_t element_bytes = multiply_capped(channel_bytes(shape->format), shape->channels);
	uint64_t row =
	    ll_footprint_round(multiply_capped(at_level(shape->width, level), element_bytes), TILE_ROW_BYTES);
	uint64_t height = at_level(shape->height, level);
	if (!shape->depth)
		return multiply_capped(row, height ? round_to_tile(height, TILE_ROWS, TILE_MOST_ROWS) : 1);
	if (is_layered)
		return multiply_capped(
		    multiply_capped(row, round_to_tile(height ? height : 1, TILE_ROWS, TILE_MOST_ROWS)), shape->depth);
	uint64_t planes = round_to_tile(at_level(shape->depth, level), 1, TILE_MOST_PLANES);
	return multiply_capped(multiply_capped(row, ll_footprint_round(height ? height : 1, TILE_ROWS)), planes);
}

static unsigned most_levels(const struct ll_cu_array3d_descriptor *shape)
{
	uint64_t side = shape->width | shape->height | shape->depth;
	return side ? 64 - (unsigned)__builtin_clzll(side) : 1;
}

uint64_t ll_footprint_array(const struct ll_cu_array3d_descriptor *shape, unsigned levels)
{
	uint64_t bytes = 0;
	if (shape->flags & (LL_CUDA_ARRAY3D_SPARSE | LL_CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0;
	if (levels > most_levels(shape))
		levels = most_levels(shape);
	for (unsigned i = 0; i < levels; i++)
		bytes = add_capped(bytes, level_bytes(shape, i));
	return ll_footprint_plain(bytes);
}

uint64_t ll_footprint_stacks(const struct ll_footprint_card *card, uint64_t stack_bytes)
{
	return multiply_capped(multiply_capped(stack_bytes, card->threads_per_sm), card->sm_count);
}

uint64_t ll_footprint_context(const struct ll_footprint_card *card, uint64_t stack_bytes)
{
	return add_capped(card->sm_count * LL_FOOTPRINT_BLOCK_BYTES, ll_footprint_stacks(card, stack_bytes));
}
