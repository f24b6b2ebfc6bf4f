/*
 * Memsets, of ranges and of rectangles: kernels of the driver.
 */
#include "cuda/capture.h"
#include "cuda/copy.h"

/* Bytes from the first to after the last that it writes. 0: nothing, or more than an address can say. */
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

static ll_cu_result fill_in(const struct ll_cu_memset_params *fill, struct ll_cu_stream *handle, bool is_async)
{
	struct ll_cu_context *context;
	struct ll_cu_stream *stream;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	if (!status)
		status = sim_stream_for_work(handle, &stream);
	if (!status)
		status = sim_fill_check(fill);
	if (!status && stream->capture && !is_async) {
		status = sim_capture_refuse(stream);
	} else if (!status && stream->capture) {
		struct ll_cu_graph_node_params params = {
		    .type = LL_CU_GRAPH_NODE_TYPE_MEMSET,
		    .fill = {fill->to, fill->pitch_bytes, fill->value, fill->element_bytes, fill->width, fill->height,
			     context},
		};
		status = sim_capture_work(stream, &params);
	} else if (!status) {
		status = sim_fill_queue(stream, fill, is_async);
	}
	sim_cuda_unlock();
	return status;
}

static ll_cu_result fill_range(ll_cu_deviceptr to, uint32_t value, unsigned element_bytes, size_t count,
			       struct ll_cu_stream *stream, bool is_async)
{
	struct ll_cu_memset_params fill = {
	    .to = to, .value = value, .element_bytes = element_bytes, .width = count, .height = 1};
	return fill_in(&fill, stream, is_async);
}

ll_cu_result cuMemsetD8_v2(ll_cu_deviceptr to, unsigned char value, size_t count)
{
	SIM_ENTER();
	return fill_range(to, value, 1, count, NULL, false);
}

ll_cu_result cuMemsetD8Async(ll_cu_deviceptr to, unsigned char value, size_t count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return fill_range(to, value, 1, count, stream, true);
}

ll_cu_result cuMemsetD2D8_v2(ll_cu_deviceptr to, size_t pitch_bytes, unsigned char value, size_t width, size_t height)
{
	SIM_ENTER();
	struct ll_cu_memset_params fill = {to, pitch_bytes, value, 1, width, height};
	return fill_in(&fill, NULL, false);
}

ll_cu_result cuMemsetD2D8Async(ll_cu_deviceptr to, size_t pitch_bytes, unsigned char value, size_t width, size_t height,
			       struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct ll_cu_memset_params fill = {to, pitch_bytes, value, 1, width, height};
	return fill_in(&fill, stream, true);
}

ll_cu_result cuMemsetD16_v2(ll_cu_deviceptr to, unsigned short value, size_t count)
{
	SIM_ENTER();
	return fill_range(to, value, 2, count, NULL, false);
}

ll_cu_result cuMemsetD16Async(ll_cu_deviceptr to, unsigned short value, size_t count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return fill_range(to, value, 2, count, stream, true);
}

ll_cu_result cuMemsetD2D16_v2(ll_cu_deviceptr to, size_t pitch_bytes, unsigned short value, size_t width, size_t height)
{
	SIM_ENTER();
	struct ll_cu_memset_params fill = {to, pitch_bytes, value, 2, width, height};
	return fill_in(&fill, NULL, false);
}

ll_cu_result cuMemsetD2D16Async(ll_cu_deviceptr to, size_t pitch_bytes, unsigned short value, size_t width,
				size_t height, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct ll_cu_memset_params fill = {to, pitch_bytes, value, 2, width, height};
	return fill_in(&fill, stream, true);
}

ll_cu_result cuMemsetD32_v2(ll_cu_deviceptr to, unsigned int value, size_t count)
{
	SIM_ENTER();
	return fill_range(to, value, 4, count, NULL, false);
}

ll_cu_result cuMemsetD32Async(ll_cu_deviceptr to, unsigned int value, size_t count, struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return fill_range(to, value, 4, count, stream, true);
}

ll_cu_result cuMemsetD2D32_v2(ll_cu_deviceptr to, size_t pitch_bytes, unsigned int value, size_t width, size_t height)
{
	SIM_ENTER();
	struct ll_cu_memset_params fill = {to, pitch_bytes, value, 4, width, height};
	return fill_in(&fill, NULL, false);
}

ll_cu_result cuMemsetD2D32Async(ll_cu_deviceptr to, size_t pitch_bytes, unsigned int value, size_t width, size_t height,
				struct ll_cu_stream *stream)
{
	SIM_ENTER();
	struct ll_cu_memset_params fill = {to, pitch_bytes, value, 4, width, height};
	return fill_in(&fill, stream, true);
}
