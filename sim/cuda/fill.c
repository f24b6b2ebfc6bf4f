/*
 * Memsets of ranges and rectangles.
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

/* cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD2D8_v2 and cuMemsetD2D8Async, and the same for elements of 16 and 32 bits.
 */
#define FILL(bits, type)                                                                                               \
	ll_cu_result cuMemsetD##bits##_v2(ll_cu_deviceptr to, type value, size_t count)                                \
	{                                                                                                              \
		SIM_ENTER();                                                                                           \
		struct ll_cu_memset_params fill = {to, 0, value, (bits) / 8, count, 1};                                \
		return fill_in(&fill, NULL, false);                                                                    \
	}                                                                                                              \
	ll_cu_result cuMemsetD##bits##Async(ll_cu_deviceptr to, type value, size_t count, struct ll_cu_stream *stream) \
	{                                                                                                              \
		SIM_ENTER();                                                                                           \
		struct ll_cu_memset_params fill = {to, 0, value, (bits) / 8, count, 1};                                \
		return fill_in(&fill, stream, true);                                                                   \
	}                                                                                                              \
	ll_cu_result cuMemsetD2D##bits##_v2(ll_cu_deviceptr to, size_t pitch_bytes, type value, size_t width,          \
					    size_t height)                                                             \
	{                                                                                                              \
		SIM_ENTER();                                                                                           \
		struct ll_cu_memset_params fill = {to, pitch_bytes, value, (bits) / 8, width, height};                 \
		return fill_in(&fill, NULL, false);                                                                    \
	}                                                                                                              \
	ll_cu_result cuMemsetD2D##bits##Async(ll_cu_deviceptr to, size_t pitch_bytes, type value, size_t width,        \
					      size_t height, struct ll_cu_stream *stream)                              \
	{                                                                                                              \
		SIM_ENTER();                                                                                           \
		struct ll_cu_memset_params fill = {to, pitch_bytes, value, (bits) / 8, width, height};                 \
		return fill_in(&fill, stream, true);                                                                   \
	}

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
