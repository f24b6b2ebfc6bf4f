/*
 * Memsets, of ranges and of rectangles.
 */
#include "cuda/enter.h"
#include "cuda/local/capture.h"
#include "cuda/local/capture_work.h"
#include "cuda/local/copy.h"
#include "cuda/local/current.h"
#include "cuda/local/stream.h"

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
