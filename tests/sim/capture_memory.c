/* Stream capture and graphs beside pools, managed memory and events of several processes. */
#include "memory.h"

static void begin(struct ll_cu_stream *stream)
{
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
}

static enum ll_cu_capture_status status_of(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status status;
	CHECK_EQUAL(cu.cuStreamIsCapturing(stream, &status), 0);
	return status;
}

static struct ll_cu_graph_exec *end(struct ll_cu_stream *stream)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	return exec;
}

TEST_IN_WORLD(NULL, a_captured_allocation_is_the_graph_s_not_the_pool_s)
{
	ll_cu_deviceptr address, nothing, plain;
	struct ll_cu_mem_pool *pool;
	uint32_t out[4] = {0};
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, sizeof out), 0);
	uint64_t before = used_bytes();
	begin(s);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 5 * MIB, s), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&nothing, 0, s), 0);
	CHECK(address && !nothing);
	CHECK_EQUAL(cu.cuMemsetD32Async(address, 9, 4, s), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoDAsync(plain, address, sizeof out, s), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, s), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFreeAsync(plain, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(status_of(s), LL_CU_STREAM_CAPTURE_STATUS_ACTIVE);
	struct ll_cu_graph_exec *exec = end(s);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), 0);
	/* What is queued still has its bytes. */
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(out, plain, sizeof out), 0);
	CHECK_EQUAL(out[3], 9);
	CHECK_EQUAL(pool_value(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(used_bytes(), before);
}

static ll_cu_deviceptr add_allocation(struct ll_cu_graph *graph, size_t bytes)
{
	struct ll_cu_graph_node *node;
	struct ll_cu_mem_alloc_params alloc = {
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
	    .bytes = bytes,
	};
	CHECK_EQUAL(cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc), 0);
	return alloc.address;
}

TEST_IN_WORLD(NULL, a_launch_without_room_takes_nothing)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	ll_cu_deviceptr stranger;
	size_t free_bytes, total_bytes;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	ll_cu_deviceptr small = add_allocation(graph, MIB), large = add_allocation(graph, GIB);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&stranger, free_bytes - GIB), 0);
	/* Nothing stays taken of a launch that failed: the next one may take it. */
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemFree(stranger), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), 0);
	CHECK_EQUAL(used_bytes() - before, 32 * MIB + GIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(small, s), 0);
	CHECK_EQUAL(cu.cuMemFree(large), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(used_bytes(), before);
}

/* Made with an upload, a graph has its memory at once; without room for it there is no graph. */
TEST_IN_WORLD(NULL, a_graph_that_is_made_with_an_upload_has_its_memory)
{
	ll_cu_deviceptr address;
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_graph_instantiate_params params = {.flags = LL_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
							.upload_stream = s};
	uint64_t before = used_bytes();
	for (int i = 0; i < 2; i++) {
		begin(s);
		CHECK_EQUAL(cu.cuMemAllocAsync(&address, i == 0 ? 40 * MIB : 300 * GIB, s), 0);
		CHECK_EQUAL(cu.cuMemFreeAsync(address, s), 0);
		CHECK_EQUAL(cu.cuStreamEndCapture(s, &graph), 0);
		CHECK_EQUAL(cu.cuGraphInstantiateWithParams(&exec, graph, &params),
			    i == 0 ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(used_bytes(), before + 64 * MIB);
		CHECK_EQUAL(params.result,
			    i == 0 ? LL_CUDA_GRAPH_INSTANTIATE_SUCCESS : LL_CUDA_GRAPH_INSTANTIATE_ERROR);
	}
}

TEST_IN_WORLD(NULL, managed_memory_moves_when_a_graph_is_launched_not_when_it_is_captured)
{
	ll_cu_deviceptr address;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuMemAllocManaged(&address, 8 * MIB, LL_CU_MEM_ATTACH_GLOBAL), 0);
	uint64_t before = used_bytes();
	begin(s);
	CHECK_EQUAL(cu.cuMemsetD32Async(address, 3, 4, s), 0);
	struct ll_cu_graph_exec *exec = end(s);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), 0);
	CHECK_EQUAL(used_bytes() - before, 8 * MIB);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(*(uint32_t *)(uintptr_t)address, 3);
	begin(s);
	CHECK_EQUAL(cu.cuMemPrefetchAsync_v1(address, 8 * MIB, 0, s), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_EQUAL(status_of(s), LL_CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

TEST_IN_WORLD(NULL, an_event_of_several_processes_cannot_be_captured)
{
	struct ll_cu_event *event;
	struct ll_cu_graph *graph;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING), 0);
	begin(s);
	CHECK_EQUAL(cu.cuEventRecord(event, s), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_EQUAL(status_of(s), LL_CU_STREAM_CAPTURE_STATUS_ACTIVE);
	CHECK_EQUAL(cu.cuStreamWaitEvent(s, event, 0), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_EQUAL(status_of(s), LL_CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	CHECK_EQUAL(cu.cuStreamEndCapture(s, &graph), LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(event), 0);
}
