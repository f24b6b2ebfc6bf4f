/*
 * Arrays and mipmaps: their memory on the card, and their attributes.
 *
 * The hardware stores them in tiles: rows of 64 bytes, at least 8 of them high. Rows are rounded to 64 bytes. Their
 * number is rounded to tiles of up to 128 rows (in three dimensions 8 rows, 16 planes), which are smaller for small
 * arrays. Measured on an H200 (driver 580): 1000x1000 of 16 bytes take 1024 rows, 100x100x100 floats 448 bytes x 104 x
 * 112, and a mipmap the sum of its levels. Small arrays share blocks of 2 MiB, as other small allocations do.
 */
#include "cuda/local/array.h"

#include <stdlib.h>

#include "cuda/local/allocations.h"
#include "cuda/local/current.h"
#include "cuda/local/pump.h"

enum { MAX_WIDTH = 131072, MAX_HEIGHT = 65536, MAX_SIDE_3D = 16384, MAX_LAYERS = 2048 };

enum { MAGIC_MIPMAP = 0x4d697031 };

static struct ll_cu_mipmapped_array *mipmaps;

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static uint64_t round_to_tile(uint64_t value, uint64_t least, uint64_t most)
{
	uint64_t size = least;
	while (size < most && size < value)
		size *= 2;
	return round_up(value, size);
}

static uint32_t element_bytes(const struct ll_cu_array3d_descriptor *shape)
{
	uint32_t channel;
	switch (shape->format) {
	case LL_CU_AD_FORMAT_UNSIGNED_INT8:
	case LL_CU_AD_FORMAT_SIGNED_INT8:
		channel = 1;
		break;
	case LL_CU_AD_FORMAT_UNSIGNED_INT16:
	case LL_CU_AD_FORMAT_SIGNED_INT16:
	case LL_CU_AD_FORMAT_HALF:
		channel = 2;
		break;
	case LL_CU_AD_FORMAT_UNSIGNED_INT32:
	case LL_CU_AD_FORMAT_SIGNED_INT32:
	case LL_CU_AD_FORMAT_FLOAT:
		channel = 4;
		break;
	default:
		return 0;
	}
	bool is_valid = shape->channels == 1 || shape->channels == 2 || shape->channels == 4;
	return is_valid ? channel * shape->channels : 0;
}

static bool is_layered(const struct ll_cu_array3d_descriptor *shape)
{
	return shape->flags & (LL_CUDA_ARRAY3D_LAYERED | LL_CUDA_ARRAY3D_CUBEMAP);
}

static bool is_valid(const struct ll_cu_array3d_descriptor *shape)
{
	if (!shape->width || !element_bytes(shape))
		return false;
	if (!shape->depth)
		return shape->width <= MAX_WIDTH && shape->height <= MAX_HEIGHT && !is_layered(shape);
	if (is_layered(shape)) {
		bool is_cube = shape->flags & LL_CUDA_ARRAY3D_CUBEMAP;
		return shape->width <= 32768 && shape->height <= 32768 && shape->depth <= MAX_LAYERS &&
		       (!is_cube || (shape->width == shape->height && shape->depth % 6 == 0));
	}
	return shape->height && shape->width <= MAX_SIDE_3D && shape->height <= MAX_SIDE_3D &&
	       shape->depth <= MAX_SIDE_3D;
}

static uint64_t tiled_bytes(const struct ll_cu_array3d_descriptor *shape)
{
	uint64_t row = round_up(shape->width * element_bytes(shape), 64), height = shape->height ? shape->height : 1;
	if (!shape->depth)
		return row * round_to_tile(height, shape->height ? 8 : 1, shape->height ? 128 : 1);
	if (is_layered(shape))
		return row * round_to_tile(height, 8, 128) * shape->depth;
	return row * round_up(height, 8) * round_to_tile(shape->depth, 1, 16);
}

static uint64_t halve_side(uint64_t value, unsigned times)
{
	return value == 0 ? 0 : value >> times ? value >> times : 1;
}

static void fill_level(struct ll_cu_mipmapped_array *mipmap, const struct ll_cu_array3d_descriptor *shape,
		       unsigned level)
{
	struct ll_cu_array *array = &mipmap->levels[level];
	array->shape = *shape;
	array->shape.width = halve_side(shape->width, level);
	array->shape.height = halve_side(shape->height, level);
	array->shape.depth = is_layered(shape) ? shape->depth : halve_side(shape->depth, level);
	array->element_bytes = element_bytes(shape);
	array->row_bytes = array->shape.width * array->element_bytes;
	array->plane_bytes = array->row_bytes * (array->shape.height ? array->shape.height : 1);
	array->bytes = array->plane_bytes * (array->shape.depth ? array->shape.depth : 1);
	array->mipmap = mipmap;
	mipmap->taken_bytes += tiled_bytes(&array->shape);
}

static unsigned most_levels(const struct ll_cu_array3d_descriptor *shape)
{
	uint64_t side = shape->width > shape->height ? shape->width : shape->height;
	if (!is_layered(shape) && shape->depth > side)
		side = shape->depth;
	unsigned count = 1;
	while (side >>= 1)
		count++;
	return count;
}

/* Makes a mipmap without memory. */
static ll_cu_result make_mipmap(struct ll_cu_context *context, const struct ll_cu_array3d_descriptor *shape,
				unsigned levels, struct ll_cu_mipmapped_array **ret_mipmap)
{
	if (shape->flags & LL_CUDA_ARRAY3D_SPARSE)
		return LL_CUDA_ERROR_NOT_SUPPORTED;
	if (!levels || !is_valid(shape))
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (levels > most_levels(shape))
		levels = most_levels(shape);
	struct ll_cu_mipmapped_array *mipmap = calloc(1, sizeof *mipmap + levels * sizeof mipmap->levels[0]);
	if (!mipmap)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	mipmap->magic = MAGIC_MIPMAP;
	mipmap->level_count = levels;
	mipmap->context = context;
	for (unsigned i = 0; i < levels; i++)
		fill_level(mipmap, shape, i);
	mipmap->next = mipmaps;
	mipmaps = mipmap;
	*ret_mipmap = mipmap;
	return LL_CUDA_SUCCESS;
}

static void place_levels(struct ll_cu_mipmapped_array *mipmap, char *bytes_at)
{
	for (unsigned i = 0; i < mipmap->level_count; i++) {
		mipmap->levels[i].bytes_at = bytes_at;
		bytes_at += mipmap->levels[i].bytes;
	}
}

static void forget_mipmap(struct ll_cu_mipmapped_array *mipmap)
{
	struct ll_cu_mipmapped_array **link = &mipmaps;
	while (*link != mipmap)
		link = &(*link)->next;
	*link = mipmap->next;
	mipmap->magic = 0;
	free(mipmap);
}

/* The visible bytes are never more than the memory on the card, so they fit in it. */
static ll_cu_result give_memory(struct ll_cu_mipmapped_array *mipmap)
{
	struct sim_memory memory;
	ll_cu_result status = sim_memory_new(mipmap->context, mipmap->taken_bytes, false, &memory);
	if (status)
		return status;
	sim_memory_find(memory.address)->origin = SIM_ORIGIN_ARRAY;
	mipmap->address = memory.address;
	place_levels(mipmap, memory.bytes_at);
	return LL_CUDA_SUCCESS;
}

ll_cu_result sim_mipmap_new(const struct ll_cu_array3d_descriptor *shape, unsigned levels, bool is_array,
			    struct ll_cu_mipmapped_array **ret_mipmap)
{
	struct ll_cu_context *context;
	struct ll_cu_mipmapped_array *mipmap;
	ll_cu_result status = sim_current(&context);
	if (!status)
		status = make_mipmap(context, shape, levels, &mipmap);
	if (status)
		return status;
	mipmap->is_array = is_array;
	if (!(shape->flags & LL_CUDA_ARRAY3D_DEFERRED_MAPPING))
		status = give_memory(mipmap);
	if (status)
		forget_mipmap(mipmap);
	else
		*ret_mipmap = mipmap;
	return status;
}

struct ll_cu_mipmapped_array *sim_mipmap_over(struct ll_cu_context *context,
					      const struct ll_cu_array3d_descriptor *shape, unsigned levels,
					      char *bytes_at, uint64_t bytes, ll_cu_result *ret_status)
{
	struct ll_cu_mipmapped_array *mipmap;
	*ret_status = make_mipmap(context, shape, levels, &mipmap);
	if (*ret_status)
		return NULL;
	mipmap->is_borrowed = true;
	if (mipmap->taken_bytes > bytes) {
		forget_mipmap(mipmap);
		*ret_status = LL_CUDA_ERROR_INVALID_VALUE;
		return NULL;
	}
	place_levels(mipmap, bytes_at);
	return mipmap;
}

bool sim_is_mipmap(const struct ll_cu_mipmapped_array *handle)
{
	for (const struct ll_cu_mipmapped_array *m = mipmaps; m; m = m->next) {
		if (m == handle)
			return true;
	}
	return false;
}

struct ll_cu_array *sim_array_of(struct ll_cu_array *handle)
{
	for (struct ll_cu_mipmapped_array *m = mipmaps; m; m = m->next) {
		if (handle >= m->levels && handle < m->levels + m->level_count)
			return handle;
	}
	return NULL;
}

void sim_mipmap_destroy(struct ll_cu_mipmapped_array *mipmap)
{
	sim_wait_context(mipmap->context);
	if (!sim_is_mipmap(mipmap))
		return; /* another thread has destroyed it before */
	if (mipmap->address && !mipmap->is_borrowed)
		sim_memory_free(sim_memory_find(mipmap->address));
	forget_mipmap(mipmap);
}

/* Their memory is freed with the context's other memory. */
void sim_arrays_forget(const struct ll_cu_context *context)
{
	for (struct ll_cu_mipmapped_array *m = mipmaps, *next; m; m = next) {
		next = m->next;
		if (m->context == context)
			forget_mipmap(m);
	}
}
