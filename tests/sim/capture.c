/* Stream capture: what becomes of captured work, and what breaks a capture. */
#include "process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#define MS UINT64_C(1000000)

static struct ll_cu_context *shared_context;
static struct ll_cu_stream *shared_stream;

static void begin(struct ll_cu_stream *stream, enum ll_cu_capture_mode mode)
{
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, mode), 0);
}

static enum ll_cu_capture_status status_of(struct ll_cu_stream *stream)
{
	enum ll_cu_capture_status status;
	CHECK_EQUAL(cu.cuStreamIsCapturing(stream, &status), 0);
	return status;
}

/* Ends a capture that something has invalidated; the stream works again afterwards. */
static void end_invalidated(struct ll_cu_stream *stream)
{
	struct ll_cu_graph *graph = (void *)&graph;
	CHECK_EQUAL(status_of(stream), LL_CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(!graph);
	CHECK_EQUAL(status_of(stream), LL_CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
}

static struct ll_cu_graph *end(struct ll_cu_stream *stream)
{
	struct ll_cu_graph *graph = NULL;
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK(graph);
	return graph;
}

static struct ll_cu_event *new_event(void)
{
	struct ll_cu_event *event;
	CHECK_EQUAL(cu.cuEventCreate(&event, 0), 0);
	return event;
}

static void launch_graph(struct ll_cu_graph *graph, struct ll_cu_stream *stream, int times)
{
	struct ll_cu_graph_exec *exec;
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	for (int i = 0; i < times; i++)
		CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
}

static _Atomic unsigned calls;

static void count_call(void *user)
{
	(void)user;
	atomic_fetch_add(&calls, 1);
}

TEST_IN_WORLD(NULL, captured_work_happens_at_each_launch_and_not_before)
{
	ll_cu_deviceptr a, b;
	uint32_t out[4] = {0}, in = 7;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	CHECK_EQUAL(cu.cuMemAlloc(&a, 16), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&b, 16), 0);
	CHECK_EQUAL(cu.cuMemsetD32(b, 1, 4), 0);
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(status_of(s), LL_CU_STREAM_CAPTURE_STATUS_ACTIVE);
	CHECK_EQUAL(cu.cuMemsetD32Async(a, 5, 4, s), 0);
	launch_timed(work, s, 2 * MS, 1, 32);
	CHECK_EQUAL(cu.cuMemcpyHtoDAsync(a, &in, 4, s), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoDAsync(b, a, 16, s), 0);
	CHECK_EQUAL(cu.cuLaunchHostFunc(s, count_call, NULL), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoHAsync(out, b, 16, s), 0);
	struct ll_cu_graph *graph = end(s);
	/* Nothing of it has happened, however long one waits. */
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(calls, 0);
	CHECK_EQUAL(out[0], 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(out, b, 16), 0);
	CHECK_EQUAL(out[0], 1);
	/* A graph's copy reads host memory when it runs. */
	in = 9;
	launch_graph(graph, s, 3);
	CHECK_EQUAL(calls, 3);
	CHECK_EQUAL(out[0], 9);
	CHECK_EQUAL(out[3], 5);
}

static size_t edge_count(struct ll_cu_graph *graph)
{
	size_t count = 0;
	CHECK_EQUAL(cu.cuGraphGetEdges(graph, NULL, NULL, NULL, &count), 0);
	return count;
}

static size_t node_count(struct ll_cu_graph *graph)
{
	size_t count = 0;
	CHECK_EQUAL(cu.cuGraphGetNodes(graph, NULL, &count), 0);
	return count;
}

TEST_IN_WORLD(NULL, streams_join_a_capture_through_events_and_must_come_back)
{
	struct ll_cu_graph *graph = NULL;
	struct ll_cu_graph_node *nodes[4], *from[2];
	size_t count = 4, from_count = 2;
	open_context(0);
	struct ll_cu_stream *a = new_stream(), *b = new_stream();
	struct ll_cu_event *fork = new_event(), *back = new_event();
	struct ll_cu_function *work = get_kernel("work_ns");
	/* One kernel, two beside each other, and one after both. */
	begin(a, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	launch_timed(work, a, MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(fork, a), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(b, fork, 0), 0);
	CHECK_EQUAL(status_of(b), LL_CU_STREAM_CAPTURE_STATUS_ACTIVE);
	launch_timed(work, a, MS, 1, 32);
	launch_timed(work, b, MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(back, b), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(a, back, 0), 0);
	launch_timed(work, a, MS, 1, 32);
	graph = end(a);
	CHECK_EQUAL(status_of(b), LL_CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK_EQUAL(edge_count(graph), 4);
	CHECK_EQUAL(cu.cuGraphGetNodes(graph, nodes, &count), 0);
	CHECK_EQUAL(count, 4);
	CHECK_EQUAL(cu.cuGraphNodeGetDependencies(nodes[3], from, NULL, &from_count), 0);
	CHECK_EQUAL(from_count, 2);
	launch_graph(graph, a, 1);
	/* Without the way back it is refused, and nothing is left of it. */
	begin(a, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(cu.cuEventRecord(fork, a), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(b, fork, 0), 0);
	launch_timed(work, b, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamEndCapture(a, &graph), LL_CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	CHECK(!graph);
	CHECK_EQUAL(status_of(b), LL_CU_STREAM_CAPTURE_STATUS_NONE);
	/* A fork in which nothing was done needs none. */
	begin(a, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	launch_timed(work, a, MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(fork, a), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(b, fork, 0), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(end(a)), 0);
}

TEST_IN_WORLD(NULL, what_cannot_be_captured_invalidates_the_capture)
{
	ll_cu_deviceptr a;
	float ms;
	open_context(0);
	struct ll_cu_stream *s = new_stream(), *other = new_stream();
	struct ll_cu_event *event = new_event(), *before = new_event();
	struct ll_cu_function *work = get_kernel("work_ns");
	CHECK_EQUAL(cu.cuMemAlloc(&a, 16), 0);
	CHECK_EQUAL(cu.cuEventRecord(before, other), 0);
	const enum ll_cu_capture_mode relaxed = LL_CU_STREAM_CAPTURE_MODE_RELAXED;

	begin(s, relaxed);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	uint64_t length = MS;
	void *params[] = {&length};
	CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, s, params, NULL),
		    LL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	end_invalidated(s);

	begin(s, relaxed);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalidated(s);

	begin(s, relaxed);
	CHECK_EQUAL(cu.cuCtxSynchronize(), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalidated(s);

	begin(s, relaxed);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	CHECK_EQUAL(cu.cuEventQuery(event), LL_CUDA_ERROR_CAPTURED_EVENT);
	CHECK_EQUAL(cu.cuEventSynchronize(event), LL_CUDA_ERROR_CAPTURED_EVENT);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, event, event), LL_CUDA_ERROR_CAPTURED_EVENT);
	end_invalidated(s);
	CHECK_EQUAL(cu.cuEventQuery(event), LL_CUDA_ERROR_CAPTURED_EVENT);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(event), 0);

	/* An order with what is outside: only the captured streams' own. */
	begin(s, relaxed);
	CHECK_EQUAL(cu.cuStreamWaitEvent(s, before, 0), LL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	end_invalidated(s);

	begin(s, relaxed);
	begin(other, relaxed);
	CHECK_EQUAL(cu.cuEventRecord(event, other), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(s, event, 0), LL_CUDA_ERROR_STREAM_CAPTURE_MERGE);
	end_invalidated(s);
	end_invalidated(other);

	/* A bad call is only a bad call. */
	begin(s, relaxed);
	CHECK_EQUAL(cu.cuLaunchKernel(work, 0, 1, 1, 32, 1, 1, 0, s, params, NULL), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemsetD32Async(a + 2, 0, 1, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(node_count(end(s)), 0);
}

static void *allocate_elsewhere(void *expected)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), (long long)(intptr_t)expected);
	return NULL;
}

static void allocate_in_thread(ll_cu_result expected)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, allocate_elsewhere, (void *)(intptr_t)expected) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

TEST_IN_WORLD(NULL, a_capture_s_mode_says_who_may_allocate)
{
	ll_cu_deviceptr address;
	uint32_t word = 0;
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	shared_context = open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	/* Global: no thread may. */
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(cu.cuMemFree(address), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalidated(s);
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&word, address, 4), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalidated(s);
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	allocate_in_thread(LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalidated(s);
	/* Thread-local: this one may not. */
	begin(s, LL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	allocate_in_thread(LL_CUDA_SUCCESS);
	CHECK_EQUAL(status_of(s), LL_CU_STREAM_CAPTURE_STATUS_ACTIVE);
	CHECK_EQUAL(cu.cuMemHostAlloc((void **)&address, 16, 0), LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalidated(s);
	/* Relaxed: everybody may. */
	begin(s, LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	allocate_in_thread(LL_CUDA_SUCCESS);
	CHECK_EQUAL(cu.cuGraphDestroy(end(s)), 0);
	/* A thread can say so for itself. */
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
	CHECK_EQUAL(mode, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	CHECK_EQUAL(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
	CHECK_EQUAL(mode, LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	CHECK_EQUAL(cu.cuGraphDestroy(end(s)), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
}

TEST_IN_WORLD(NULL, the_legacy_stream_cannot_be_used_beside_a_captured_blocking_one)
{
	ll_cu_deviceptr address;
	enum ll_cu_capture_status status;
	struct ll_cu_stream *blocking, *free_stream;
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	uint64_t length = MS;
	void *params[] = {&length};
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	CHECK_EQUAL(cu.cuStreamCreate(&blocking, LL_CU_STREAM_DEFAULT), 0);
	free_stream = new_stream();
	CHECK_EQUAL(cu.cuStreamBeginCapture(NULL, LL_CU_STREAM_CAPTURE_MODE_GLOBAL),
		    LL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	begin(blocking, LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	CHECK_EQUAL(cu.cuStreamIsCapturing(NULL, &status), LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK_EQUAL(status_of(blocking), LL_CU_STREAM_CAPTURE_STATUS_ACTIVE); /* asking does no harm */
	launch_timed(work, free_stream, MS, 1, 32);                           /* nor does another stream */
	CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		    LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_invalidated(blocking);
	begin(blocking, LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&length, address, 8), LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_invalidated(blocking);
	/* A stream that the legacy one does not wait for is not in its way. */
	begin(free_stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	launch_timed(work, NULL, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
	CHECK_EQUAL(node_count(end(free_stream)), 0);
}

static void *end_elsewhere(void *unused)
{
	struct ll_cu_graph *graph;
	(void)unused;
	CHECK_EQUAL(cu.cuStreamEndCapture(shared_stream, &graph), LL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	return NULL;
}

TEST_IN_WORLD(NULL, a_capture_ends_where_and_by_whom_it_was_begun)
{
	struct ll_cu_graph *graph;
	pthread_t thread;
	open_context(0);
	struct ll_cu_stream *s = new_stream(), *other = new_stream();
	struct ll_cu_event *event = new_event();
	struct ll_cu_function *work = get_kernel("work_ns");
	CHECK_EQUAL(cu.cuStreamEndCapture(s, &graph), LL_CUDA_ERROR_ILLEGAL_STATE);
	begin(s, LL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	CHECK_EQUAL(cu.cuStreamBeginCapture_v1(s), LL_CUDA_ERROR_ILLEGAL_STATE);
	shared_stream = s;
	CHECK(pthread_create(&thread, NULL, end_elsewhere, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_EQUAL(cu.cuGraphDestroy(end(s)), 0);
	CHECK_EQUAL(cu.cuStreamBeginCapture_v1(s), 0);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(other, event, 0), 0);
	CHECK_EQUAL(cu.cuStreamEndCapture(other, &graph), LL_CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	end_invalidated(s);
	/* A capture goes with its stream. */
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(other, event, 0), 0);
	launch_timed(work, other, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamDestroy(s), 0);
	CHECK_EQUAL(status_of(other), LL_CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

TEST_IN_WORLD(NULL, a_capture_tells_where_it_is_and_takes_nodes_made_by_hand)
{
	enum ll_cu_capture_status status;
	uint64_t id = 0, next_id = 0;
	struct ll_cu_graph *graph = NULL, *own;
	struct ll_cu_graph_node *const *tail = NULL, *node, *last;
	const struct ll_cu_graph_edge_data *edges = NULL;
	size_t count = 0, from_count = 0;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	begin(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	launch_timed(work, s, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamGetCaptureInfo(s, &status, &id, &graph, &tail, &edges, &count), 0);
	CHECK_EQUAL(status, LL_CU_STREAM_CAPTURE_STATUS_ACTIVE);
	CHECK(id && graph && edges);
	CHECK_EQUAL(count, 1);
	/* A node by hand in the middle, on which what follows depends. */
	CHECK_EQUAL(cu.cuGraphAddEmptyNode(&node, graph, tail, count), 0);
	CHECK_EQUAL(cu.cuStreamUpdateCaptureDependencies(s, &node, NULL, 1, LL_CU_STREAM_SET_CAPTURE_DEPENDENCIES), 0);
	launch_timed(work, s, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamGetCaptureInfo_v2(s, &status, NULL, NULL, &tail, &count), 0);
	last = tail[0];
	CHECK_EQUAL(cu.cuGraphNodeGetDependencies_v1(last, NULL, &from_count), 0);
	CHECK_EQUAL(from_count, 1);
	CHECK_EQUAL(edge_count(graph), 2);
	CHECK(end(s) == graph);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	CHECK_EQUAL(cu.cuStreamUpdateCaptureDependencies(s, &node, NULL, 1, 0), LL_CUDA_ERROR_ILLEGAL_STATE);
	/* Into a graph that there was before. */
	CHECK_EQUAL(cu.cuGraphCreate(&own, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddEmptyNode(&node, own, NULL, 0), 0);
	CHECK_EQUAL(cu.cuStreamBeginCaptureToGraph(s, own, &node, NULL, 1, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	CHECK_EQUAL(cu.cuStreamGetCaptureInfo_v1(s, &status, &next_id), 0);
	CHECK(next_id != id);
	launch_timed(work, s, MS, 1, 32);
	CHECK(end(s) == own);
	CHECK_EQUAL(edge_count(own), 1);
	launch_graph(own, s, 1);
}

TEST_IN_WORLD(NULL, a_thread_s_own_default_stream_can_be_captured)
{
	__typeof__(cu.cuStreamBeginCapture) begin_own;
	__typeof__(cu.cuStreamEndCapture) end_own;
	__typeof__(cu.cuMemsetD32Async) fill_own;
	struct ll_cu_graph *graph;
	ll_cu_deviceptr address;
	uint32_t value;
	open_context(0);
	void *found = dlsym(cu.library, "cuStreamBeginCapture_v2_ptsz");
	memcpy(&begin_own, &found, sizeof found);
	found = dlsym(cu.library, "cuStreamEndCapture_ptsz");
	memcpy(&end_own, &found, sizeof found);
	found = dlsym(cu.library, "cuMemsetD32Async_ptsz");
	memcpy(&fill_own, &found, sizeof found);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	CHECK_EQUAL(cu.cuMemsetD32(address, 1, 4), 0);
	CHECK_EQUAL(begin_own(NULL, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	CHECK_EQUAL(fill_own(address, 2, 4, NULL), 0);
	CHECK_EQUAL(end_own(NULL, &graph), 0);
	CHECK_EQUAL(node_count(graph), 1);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&value, address, 4), 0);
	CHECK_EQUAL(value, 1);
	launch_graph(graph, LL_CU_STREAM_PER_THREAD, 1);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&value, address, 4), 0);
	CHECK_EQUAL(value, 2);
}
