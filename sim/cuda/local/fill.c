/*
 * Memsets, which are kernels of the driver.
 */
#include "cuda/local/copy.h"

#include "cuda/local/capture.h"
#include "cuda/local/managed.h"
#include "cuda/local/pump.h"

/* Returns the distance from the first written byte to the byte after the last one. 0: nothing is written, or the
 * distance overflows. */
static size_t span_bytes(const struct ll_cu_memset_params *fill)
{
	size_t width, above, bytes;
	if (!fill->height || __builtin_mul_overflow(fill->width, (size_t)fill->element_bytes, &width) || !width ||
	    __builtin_mul_overflow(fill->height - 1, fill->pitch_bytes, &above) ||
	    __builtin_add_overflow(above, width, &bytes))
		return 0;
	return bytes;
}

ll_cu_result sim_fill_check(const struct ll_cu_memset_params *fill)
{
	size_t element = fill->element_bytes;
	bool is_known_element = element == 1 || element == 2 || element == 4;
	if (!is_known_element || fill->to % element || (fill->height > 1 && fill->pitch_bytes % element) ||
	    (fill->height > 1 && fill->pitch_bytes / element < fill->width))
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!fill->width || !fill->height)
		return LL_CUDA_SUCCESS;
	struct sim_place place;
	size_t bytes = span_bytes(fill);
	return bytes ? sim_place_device(fill->to, bytes, &place) : LL_CUDA_ERROR_INVALID_VALUE;
}

ll_cu_result sim_fill_queue(struct ll_cu_stream *stream, const struct ll_cu_memset_params *fill, bool is_async)
{
	struct sim_op op;
	uint64_t position;
	struct sim_place place;
	ll_cu_result status = sim_fill_check(fill);
	if (status || !fill->width || !fill->height)
		return status;
	status = sim_place_device(fill->to, span_bytes(fill), &place);
	if (status)
		return status;
	struct sim_action action = {
	    .kind = SIM_ACTION_FILL,
	    .to = place.at,
	    .value = fill->value,
	    .width = fill->element_bytes,
	    .bytes = fill->width * fill->element_bytes,
	    .rows = {.height = fill->height, .depth = 1, .to_pitch = fill->pitch_bytes},
	};
	sim_managed_touch(fill->to);
	sim_copy_describe(&op, stream->context, SIM_ON_CARD, action.bytes * fill->height);
	status = sim_queue(stream, &op, &action, &position);
	return status || is_async ? status : sim_wait(stream, position);
}
