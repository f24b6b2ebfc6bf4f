/*
 * The variants in which no stream means this thread's default stream: each calls the function itself, which asks
 * sim_null_is_per_thread. The list of them is src/abi/cuda_per_thread.def.
 */
#include "cuda/per_thread.h"

#define PER_THREAD(symbol, suffix, params, args)                                                                       \
	ll_cu_result symbol##suffix params                                                                             \
	{                                                                                                              \
		sim_null_is_per_thread = true;                                                                         \
		ll_cu_result status = symbol args;                                                                     \
		sim_null_is_per_thread = false;                                                                        \
		return status;                                                                                         \
	}

/* clang-format off: it takes a pointer in a macro for a product. */
PER_THREAD(cuMemcpy, _ptds, (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
PER_THREAD(cuMemcpyHtoD_v2, _ptds, (ll_cu_deviceptr to, const void *from, size_t bytes), (to, from, bytes))
PER_THREAD(cuMemcpyDtoH_v2, _ptds, (void *to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
PER_THREAD(cuMemcpyDtoD_v2, _ptds, (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
PER_THREAD(cuMemsetD8_v2, _ptds, (ll_cu_deviceptr to, unsigned char value, size_t count), (to, value, count))
PER_THREAD(cuMemsetD16_v2, _ptds, (ll_cu_deviceptr to, unsigned short value, size_t count), (to, value, count))
PER_THREAD(cuMemsetD32_v2, _ptds, (ll_cu_deviceptr to, unsigned int value, size_t count), (to, value, count))
PER_THREAD(cuMemcpyAsync, _ptsz, (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	   (to, from, bytes, stream))
PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz,
	   (ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream), (to, from, bytes, stream))
PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	   (to, from, bytes, stream))
PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	   (to, from, bytes, stream))
PER_THREAD(cuMemsetD8Async, _ptsz, (ll_cu_deviceptr to, unsigned char value, size_t count, struct ll_cu_stream *stream),
	   (to, value, count, stream))
PER_THREAD(cuMemsetD16Async, _ptsz,
	   (ll_cu_deviceptr to, unsigned short value, size_t count, struct ll_cu_stream *stream),
	   (to, value, count, stream))
PER_THREAD(cuMemsetD32Async, _ptsz, (ll_cu_deviceptr to, unsigned int value, size_t count, struct ll_cu_stream *stream),
	   (to, value, count, stream))
PER_THREAD(cuMemAllocAsync, _ptsz, (ll_cu_deviceptr * ret_address, size_t bytes, struct ll_cu_stream *stream),
	   (ret_address, bytes, stream))
PER_THREAD(cuMemAllocFromPoolAsync, _ptsz,
	   (ll_cu_deviceptr * ret_address, size_t bytes, struct ll_cu_mem_pool *pool, struct ll_cu_stream *stream),
	   (ret_address, bytes, pool, stream))
PER_THREAD(cuMemFreeAsync, _ptsz, (ll_cu_deviceptr address, struct ll_cu_stream *stream), (address, stream))
PER_THREAD(cuMemPrefetchAsync, _ptsz,
	   (ll_cu_deviceptr address, size_t bytes, ll_cu_device device, struct ll_cu_stream *stream),
	   (address, bytes, device, stream))
PER_THREAD(cuMemPrefetchAsync_v2, _ptsz,
	   (ll_cu_deviceptr address, size_t bytes, struct ll_cu_mem_location location, unsigned int flags,
	    struct ll_cu_stream *stream),
	   (address, bytes, location, flags, stream))
PER_THREAD(cuMemPrefetchBatchAsync, _ptsz,
	   (ll_cu_deviceptr * addresses, size_t *bytes, size_t count, struct ll_cu_mem_location *locations,
	    size_t *first_of, size_t location_count, unsigned long long flags, struct ll_cu_stream *stream),
	   (addresses, bytes, count, locations, first_of, location_count, flags, stream))
PER_THREAD(cuMemDiscardBatchAsync, _ptsz,
	   (ll_cu_deviceptr * addresses, size_t *bytes, size_t count, unsigned long long flags,
	    struct ll_cu_stream *stream),
	   (addresses, bytes, count, flags, stream))
PER_THREAD(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
	   (ll_cu_deviceptr * addresses, size_t *bytes, size_t count, struct ll_cu_mem_location *locations,
	    size_t *first_of, size_t location_count, unsigned long long flags, struct ll_cu_stream *stream),
	   (addresses, bytes, count, locations, first_of, location_count, flags, stream))
PER_THREAD(cuMemBatchDecompressAsync, _ptsz,
	   (struct ll_cu_mem_decompress_params * params, size_t count, unsigned int flags, size_t *ret_failed,
	    struct ll_cu_stream *stream),
	   (params, count, flags, ret_failed, stream))
PER_THREAD(cuMemMapArrayAsync, _ptsz,
	   (struct ll_cu_array_map_info * infos, unsigned int count, struct ll_cu_stream *stream),
	   (infos, count, stream))
PER_THREAD(cuLaunchKernel, _ptsz,
	   (struct ll_cu_function * function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	    struct ll_cu_stream *stream, void **params, void **extra),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra))
PER_THREAD(cuLaunchKernelEx, _ptsz,
	   (const struct ll_cu_launch_config *config, struct ll_cu_function *function, void **params, void **extra),
	   (config, function, params, extra))
PER_THREAD(cuLaunchHostFunc, _ptsz, (struct ll_cu_stream * stream, ll_cu_host_fn function, void *user),
	   (stream, function, user))
PER_THREAD(cuStreamGetPriority, _ptsz, (struct ll_cu_stream * stream, int *ret_priority), (stream, ret_priority))
PER_THREAD(cuStreamGetFlags, _ptsz, (struct ll_cu_stream * stream, unsigned int *ret_flags), (stream, ret_flags))
PER_THREAD(cuStreamGetCtx, _ptsz, (struct ll_cu_stream * stream, struct ll_cu_context **ret_context),
	   (stream, ret_context))
PER_THREAD(cuStreamQuery, _ptsz, (struct ll_cu_stream * stream), (stream))
PER_THREAD(cuStreamSynchronize, _ptsz, (struct ll_cu_stream * stream), (stream))
PER_THREAD(cuStreamWaitEvent, _ptsz, (struct ll_cu_stream * stream, struct ll_cu_event *event, unsigned int flags),
	   (stream, event, flags))
PER_THREAD(cuStreamAddCallback, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_stream_callback callback, void *user, unsigned int flags),
	   (stream, callback, user, flags))
PER_THREAD(cuStreamWriteValue32, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint32_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamWriteValue32_v2, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint32_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamWaitValue32_v2, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint32_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuEventRecord, _ptsz, (struct ll_cu_event * event, struct ll_cu_stream *stream), (event, stream))
PER_THREAD(cuEventRecordWithFlags, _ptsz, (struct ll_cu_event * event, struct ll_cu_stream *stream, unsigned int flags),
	   (event, stream, flags))
PER_THREAD(cuLaunchCooperativeKernel, _ptsz,
	   (struct ll_cu_function * function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
	    struct ll_cu_stream *stream, void **params),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params))
PER_THREAD(cuMemcpy2D_v2, _ptds, (const struct ll_cu_memcpy2d *copy), (copy))
PER_THREAD(cuMemcpy2DUnaligned_v2, _ptds, (const struct ll_cu_memcpy2d *copy), (copy))
PER_THREAD(cuMemcpy2DAsync_v2, _ptsz, (const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream), (copy, stream))
PER_THREAD(cuMemcpy3D_v2, _ptds, (const struct ll_cu_memcpy3d *copy), (copy))
PER_THREAD(cuMemcpy3DAsync_v2, _ptsz, (const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *stream), (copy, stream))
PER_THREAD(cuMemcpyPeer, _ptds,
	   (ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
	    struct ll_cu_context *from_context, size_t bytes),
	   (to, to_context, from, from_context, bytes))
PER_THREAD(cuMemcpyPeerAsync, _ptsz,
	   (ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
	    struct ll_cu_context *from_context, size_t bytes, struct ll_cu_stream *stream),
	   (to, to_context, from, from_context, bytes, stream))
PER_THREAD(cuMemcpy3DPeer, _ptds, (const struct ll_cu_memcpy3d_peer *copy), (copy))
PER_THREAD(cuMemcpy3DPeerAsync, _ptsz, (const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream),
	   (copy, stream))
PER_THREAD(cuMemsetD2D8_v2, _ptds,
	   (ll_cu_deviceptr to, size_t pitch_bytes, unsigned char value, size_t width, size_t height),
	   (to, pitch_bytes, value, width, height))
PER_THREAD(cuMemsetD2D8Async, _ptsz,
	   (ll_cu_deviceptr to, size_t pitch_bytes, unsigned char value, size_t width, size_t height,
	    struct ll_cu_stream *stream),
	   (to, pitch_bytes, value, width, height, stream))
PER_THREAD(cuMemsetD2D16_v2, _ptds,
	   (ll_cu_deviceptr to, size_t pitch_bytes, unsigned short value, size_t width, size_t height),
	   (to, pitch_bytes, value, width, height))
PER_THREAD(cuMemsetD2D16Async, _ptsz,
	   (ll_cu_deviceptr to, size_t pitch_bytes, unsigned short value, size_t width, size_t height,
	    struct ll_cu_stream *stream),
	   (to, pitch_bytes, value, width, height, stream))
PER_THREAD(cuMemsetD2D32_v2, _ptds,
	   (ll_cu_deviceptr to, size_t pitch_bytes, unsigned int value, size_t width, size_t height),
	   (to, pitch_bytes, value, width, height))
PER_THREAD(cuMemsetD2D32Async, _ptsz,
	   (ll_cu_deviceptr to, size_t pitch_bytes, unsigned int value, size_t width, size_t height,
	    struct ll_cu_stream *stream),
	   (to, pitch_bytes, value, width, height, stream))
PER_THREAD(cuStreamWaitValue32, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint32_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamWriteValue64_v2, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint64_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamWriteValue64, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint64_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamWaitValue64_v2, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint64_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamWaitValue64, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, uint64_t value, unsigned int flags),
	   (stream, address, value, flags))
PER_THREAD(cuStreamBatchMemOp_v2, _ptsz,
	   (struct ll_cu_stream * stream, unsigned int count, union ll_cu_stream_mem_op *ops, unsigned int flags),
	   (stream, count, ops, flags))
PER_THREAD(cuStreamBatchMemOp, _ptsz,
	   (struct ll_cu_stream * stream, unsigned int count, union ll_cu_stream_mem_op *ops, unsigned int flags),
	   (stream, count, ops, flags))
PER_THREAD(cuStreamAttachMemAsync, _ptsz,
	   (struct ll_cu_stream * stream, ll_cu_deviceptr address, size_t bytes, unsigned int flags),
	   (stream, address, bytes, flags))
PER_THREAD(cuStreamGetId, _ptsz, (struct ll_cu_stream * stream, unsigned long long *ret_id), (stream, ret_id))
PER_THREAD(cuStreamGetDevice, _ptsz, (struct ll_cu_stream * stream, ll_cu_device *ret_device), (stream, ret_device))
PER_THREAD(cuStreamCopyAttributes, _ptsz, (struct ll_cu_stream * to, struct ll_cu_stream *from), (to, from))
PER_THREAD(cuStreamGetAttribute, _ptsz,
	   (struct ll_cu_stream * stream, enum ll_cu_launch_attribute_id attribute,
	    union ll_cu_launch_attribute_value *ret_value),
	   (stream, attribute, ret_value))
PER_THREAD(cuStreamSetAttribute, _ptsz,
	   (struct ll_cu_stream * stream, enum ll_cu_launch_attribute_id attribute,
	    const union ll_cu_launch_attribute_value *value),
	   (stream, attribute, value))
PER_THREAD(cuStreamBeginCapture_v2, _ptsz, (struct ll_cu_stream * stream, enum ll_cu_capture_mode mode), (stream, mode))
PER_THREAD(cuStreamBeginCapture, _ptsz, (struct ll_cu_stream * stream), (stream))
PER_THREAD(cuStreamBeginCaptureToGraph, _ptsz,
	   (struct ll_cu_stream * stream, struct ll_cu_graph *graph, struct ll_cu_graph_node *const *dependencies,
	    const struct ll_cu_graph_edge_data *edges, size_t count, enum ll_cu_capture_mode mode),
	   (stream, graph, dependencies, edges, count, mode))
PER_THREAD(cuStreamEndCapture, _ptsz, (struct ll_cu_stream * stream, struct ll_cu_graph **ret_graph),
	   (stream, ret_graph))
PER_THREAD(cuStreamIsCapturing, _ptsz, (struct ll_cu_stream * stream, enum ll_cu_capture_status *ret_status),
	   (stream, ret_status))
PER_THREAD(cuStreamGetCaptureInfo, _ptsz,
	   (struct ll_cu_stream * stream, enum ll_cu_capture_status *ret_status, uint64_t *ret_id),
	   (stream, ret_status, ret_id))
PER_THREAD(cuStreamGetCaptureInfo_v2, _ptsz,
	   (struct ll_cu_stream * stream, enum ll_cu_capture_status *ret_status, uint64_t *ret_id,
	    struct ll_cu_graph **ret_graph, struct ll_cu_graph_node *const **ret_dependencies, size_t *ret_count),
	   (stream, ret_status, ret_id, ret_graph, ret_dependencies, ret_count))
PER_THREAD(cuStreamGetCaptureInfo_v3, _ptsz,
	   (struct ll_cu_stream * stream, enum ll_cu_capture_status *ret_status, uint64_t *ret_id,
	    struct ll_cu_graph **ret_graph, struct ll_cu_graph_node *const **ret_dependencies,
	    const struct ll_cu_graph_edge_data **ret_edges, size_t *ret_count),
	   (stream, ret_status, ret_id, ret_graph, ret_dependencies, ret_edges, ret_count))
PER_THREAD(cuStreamUpdateCaptureDependencies, _ptsz,
	   (struct ll_cu_stream * stream, struct ll_cu_graph_node **dependencies, size_t count, unsigned int flags),
	   (stream, dependencies, count, flags))
PER_THREAD(cuStreamUpdateCaptureDependencies_v2, _ptsz,
	   (struct ll_cu_stream * stream, struct ll_cu_graph_node **dependencies,
	    const struct ll_cu_graph_edge_data *edges, size_t count, unsigned int flags),
	   (stream, dependencies, edges, count, flags))
PER_THREAD(cuGraphInstantiateWithParams, _ptsz,
	   (struct ll_cu_graph_exec * *ret_exec, struct ll_cu_graph *graph,
	    struct ll_cu_graph_instantiate_params *params),
	   (ret_exec, graph, params))
PER_THREAD(cuGraphUpload, _ptsz, (struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream), (exec, stream))
PER_THREAD(cuGraphLaunch, _ptsz, (struct ll_cu_graph_exec * exec, struct ll_cu_stream *stream), (exec, stream))
PER_THREAD(cuMemcpyAtoA_v2, _ptds,
	   (struct ll_cu_array * to, size_t to_offset, struct ll_cu_array *from, size_t from_offset, size_t bytes),
	   (to, to_offset, from, from_offset, bytes))
PER_THREAD(cuMemcpyAtoD_v2, _ptds, (ll_cu_deviceptr to, struct ll_cu_array *from, size_t from_offset, size_t bytes),
	   (to, from, from_offset, bytes))
PER_THREAD(cuMemcpyDtoA_v2, _ptds, (struct ll_cu_array * to, size_t to_offset, ll_cu_deviceptr from, size_t bytes),
	   (to, to_offset, from, bytes))
PER_THREAD(cuMemcpyAtoH_v2, _ptds, (void *to, struct ll_cu_array *from, size_t from_offset, size_t bytes),
	   (to, from, from_offset, bytes))
PER_THREAD(cuMemcpyAtoHAsync_v2, _ptsz,
	   (void *to, struct ll_cu_array *from, size_t from_offset, size_t bytes, struct ll_cu_stream *stream),
	   (to, from, from_offset, bytes, stream))
PER_THREAD(cuMemcpyHtoA_v2, _ptds, (struct ll_cu_array * to, size_t to_offset, const void *from, size_t bytes),
	   (to, to_offset, from, bytes))
PER_THREAD(cuMemcpyHtoAAsync_v2, _ptsz,
	   (struct ll_cu_array * to, size_t to_offset, const void *from, size_t bytes, struct ll_cu_stream *stream),
	   (to, to_offset, from, bytes, stream))
PER_THREAD(cuMemcpyBatchAsync_v2, _ptsz,
	   (ll_cu_deviceptr * to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
	    struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count,
	    struct ll_cu_stream *stream),
	   (to, from, bytes, count, attributes, first_of, attribute_count, stream))
PER_THREAD(cuMemcpyBatchAsync, _ptsz,
	   (ll_cu_deviceptr * to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
	    struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count, size_t *ret_failed,
	    struct ll_cu_stream *stream),
	   (to, from, bytes, count, attributes, first_of, attribute_count, ret_failed, stream))
PER_THREAD(cuMemcpy3DBatchAsync_v2, _ptsz,
	   (size_t count, struct ll_cu_copy3d_op *ops, unsigned long long flags, struct ll_cu_stream *stream),
	   (count, ops, flags, stream))
PER_THREAD(cuMemcpy3DBatchAsync, _ptsz,
	   (size_t count, struct ll_cu_copy3d_op *ops, size_t *ret_failed, unsigned long long flags,
	    struct ll_cu_stream *stream),
	   (count, ops, ret_failed, flags, stream))
PER_THREAD(cuMemcpyWithAttributesAsync, _ptsz,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_copy_attributes *attributes,
	    struct ll_cu_stream *stream),
	   (to, from, bytes, attributes, stream))
PER_THREAD(cuMemcpy3DWithAttributesAsync, _ptsz,
	   (struct ll_cu_copy3d_op * op, unsigned long long flags, struct ll_cu_stream *stream), (op, flags, stream))
