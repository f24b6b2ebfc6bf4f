/* Memory that graphs allocate: charged when they have it, and refused beyond the limit. */
#include "governed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

static uint64_t graph_charge(void)
{
	return charged() - CONTEXT_BYTES;
}

TEST_IN_WORLD(NULL, memory_of_graphs_is_charged_when_they_have_it)
{
	ll_cu_deviceptr address;
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 10 * MIB, stream), 0);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(graph_charge(), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	uint64_t reserved;
	CHECK_EQUAL(cu.cuDeviceGetGraphMemAttribute(0, LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved), 0);
	CHECK(reserved >= 10 * MIB);
	CHECK_EQUAL(graph_charge(), reserved);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(graph_charge(), 0);
}

static ll_cu_result add_node(unsigned way, struct ll_cu_graph *graph)
{
	struct ll_cu_graph_node *node;
	struct ll_cu_graph_node_params any = {.type = LL_CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	any.alloc = (struct ll_cu_mem_alloc_params){
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}},
	    .bytes = 10 * MIB,
	};
	switch (way) {
	case 0:
		return cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &any.alloc);
	case 1:
		return cu.cuGraphAddNode_v1(&node, graph, NULL, 0, &any);
	case 2:
		return cu.cuGraphAddNode(&node, graph, NULL, NULL, 0, &any);
	default:
		return cu.cuGraphAddNode_v3(&node, graph, NULL, NULL, 0, &any);
	}
}

static unsigned node_way;

/* In a process of its own: the first graph that allocates is what makes the shim look. */
static void body_node(void)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	uint64_t reserved;
	govern(GIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	CHECK_EQUAL(add_node(node_way, graph), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0); /* charged from here on, nothing waited for */
	CHECK_EQUAL(cu.cuDeviceGetGraphMemAttribute(0, LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved), 0);
	CHECK(reserved >= 10 * MIB);
	CHECK_EQUAL(graph_charge(), reserved);
}

TEST(memory_of_graphs_that_were_put_together_is_charged)
{
	for (node_way = 0; node_way < 4; node_way++)
		in_world("driver 610.10 cuda 13.4", body_node);
}

static struct ll_cu_graph_exec *make_exec(struct ll_cu_stream *stream, uint64_t bytes, bool frees)
{
	ll_cu_deviceptr address;
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, bytes, stream), 0);
	if (frees)
		CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	return exec;
}

TEST_IN_WORLD(NULL, a_graph_whose_memory_is_over_the_limit_is_refused)
{
	ll_cu_deviceptr address;
	govern(CONTEXT_BYTES + 256 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_graph_exec *large = make_exec(stream, GIB, true), *small = make_exec(stream, 200 * MIB, true);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(cu.cuGraphLaunch(large, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(cu.cuGraphUpload(large, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQUAL(graph_charge(), 0);
		CHECK_EQUAL(cu.cuGraphLaunch(small, stream), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		CHECK_EQUAL(graph_charge(), 224 * MIB);
	}
	/* what graphs keep in reserve is given up for others, and taken again */
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(graph_charge(), 100 * MIB);
	CHECK_EQUAL(cu.cuGraphLaunch(small, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuGraphUpload(small, stream), 0);
	CHECK_EQUAL(graph_charge(), 224 * MIB);
	CHECK_EQUAL(cu.cuGraphLaunch(small, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	/* while it has the memory, too */
	struct ll_cu_graph_exec *keeps = make_exec(stream, 30 * MIB, false);
	CHECK_EQUAL(cu.cuGraphLaunch(keeps, stream), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(large, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK(graph_charge() >= 32 * MIB && graph_charge() <= 256 * MIB);
}

/* A launch of a graph that has its memory takes nothing, and so needs no room under the limit. */
TEST_IN_WORLD(NULL, a_graph_that_has_its_memory_needs_no_room)
{
	govern(CONTEXT_BYTES + 256 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < 5; i++) {
		struct ll_cu_graph_exec *former = make_exec(stream, 100 * MIB, true);
		CHECK_EQUAL(cu.cuGraphLaunch(former, stream), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		CHECK_EQUAL(cu.cuGraphExecDestroy(former), 0);
	}
	struct ll_cu_graph_exec *one = make_exec(stream, 100 * MIB, true), *other = make_exec(stream, 80 * MIB, true);
	for (int i = 0; i < 2; i++) {
		CHECK_EQUAL(cu.cuGraphLaunch(one, stream), 0);
		CHECK_EQUAL(cu.cuGraphLaunch(other, stream), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	CHECK_EQUAL(graph_charge(), 224 * MIB);
	set_limit(CONTEXT_BYTES + 100 * MIB);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(cu.cuGraphLaunch(one, stream), 0);
		CHECK_EQUAL(cu.cuGraphLaunch(other, stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	/* what gave its memory back has to ask for it again, and so has one of the same name */
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(one, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuGraphLaunch(other, stream), 0);
	CHECK_EQUAL(cu.cuGraphExecDestroy(one), 0);
	one = make_exec(stream, 100 * MIB, true);
	CHECK_EQUAL(cu.cuGraphLaunch(one, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuGraphLaunch(other, stream), 0);
}

/* ---- ways to take the memory ---- */

#define WAY_LIMIT (CONTEXT_BYTES + 256 * MIB)

static struct ll_cu_mem_alloc_params alloc_params(uint64_t bytes)
{
	return (struct ll_cu_mem_alloc_params){
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}},
	    .bytes = bytes};
}

/* A graph of `count` allocations, all in use at the same time. frees: and they are freed in it. */
static struct ll_cu_graph *make_graph(unsigned count, uint64_t bytes, bool frees)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_node *nodes[8], *node;
	struct ll_cu_mem_alloc_params params[8];
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	for (unsigned i = 0; i < count; i++) {
		params[i] = alloc_params(bytes);
		CHECK_EQUAL(cu.cuGraphAddMemAllocNode(&nodes[i], graph, NULL, 0, &params[i]), 0);
	}
	for (unsigned i = 0; frees && i < count; i++)
		CHECK_EQUAL(cu.cuGraphAddMemFreeNode(&node, graph, nodes, count, params[i].address), 0);
	return graph;
}

enum way {
	LAUNCH,
	LAUNCH_PER_THREAD,
	UPLOAD,
	UPLOAD_PER_THREAD,
	UPLOAD_WITH_PARAMS,
	UPLOAD_WITH_PARAMS_PER_THREAD,
	WAYS
};

static void *find(const char *symbol)
{
	void *found = dlsym(cu.library, symbol);
	CHECK(found);
	return found;
}

enum { MAKERS = 3 };
static int maker;

static ll_cu_result make_exec_of(struct ll_cu_graph *graph, struct ll_cu_graph_exec **ret_exec)
{
	return maker == 0   ? cu.cuGraphInstantiate_v1(ret_exec, graph, NULL, NULL, 0)
	       : maker == 1 ? cu.cuGraphInstantiate_v2(ret_exec, graph, NULL, NULL, 0)
			    : cu.cuGraphInstantiate(ret_exec, graph, 0);
}

/* The graph takes its memory in that way. */
static ll_cu_result take_memory(enum way way, struct ll_cu_graph *graph)
{
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_graph_exec *exec;
	struct ll_cu_graph_instantiate_params params = {.flags = LL_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
							.upload_stream = stream};
	__typeof__(cu.cuGraphLaunch) launch, launch_per_thread, upload_per_thread;
	__typeof__(cu.cuGraphInstantiateWithParams) instantiate;
	*(void **)&launch_per_thread = find("cuGraphLaunch_ptsz");
	*(void **)&upload_per_thread = find("cuGraphUpload_ptsz");
	*(void **)&instantiate = find("cuGraphInstantiateWithParams_ptsz");
	if (way == UPLOAD_WITH_PARAMS)
		return cu.cuGraphInstantiateWithParams(&exec, graph, &params);
	if (way == UPLOAD_WITH_PARAMS_PER_THREAD)
		return instantiate(&exec, graph, &params);
	CHECK_EQUAL(make_exec_of(graph, &exec), 0);
	launch = way == LAUNCH              ? cu.cuGraphLaunch
		 : way == LAUNCH_PER_THREAD ? launch_per_thread
		 : way == UPLOAD            ? cu.cuGraphUpload
					    : upload_per_thread;
	return launch(exec, stream);
}

static enum way graph_way;
static bool is_inside; /* the allocating graph is a child of another one */

static struct ll_cu_graph *wrap(struct ll_cu_graph *graph)
{
	struct ll_cu_graph *outer;
	struct ll_cu_graph_node *node;
	struct ll_cu_graph_node_params params = {
	    .type = LL_CU_GRAPH_NODE_TYPE_GRAPH,
	    .child = {.graph = graph, .ownership = LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
	if (!is_inside)
		return graph;
	CHECK_EQUAL(cu.cuGraphCreate(&outer, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddNode(&node, outer, NULL, NULL, 0, &params), 0);
	return outer;
}

static void body_way(void)
{
	govern(WAY_LIMIT);
	open_context(0);
	begin_watch();
	CHECK_EQUAL(take_memory(graph_way, wrap(make_graph(3, 90 * MIB, true))), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(graph_charge(), 0);
	CHECK_EQUAL(card_used() / (400 * MIB), 1); /* the context alone */
	CHECK_EQUAL(take_memory(graph_way, wrap(make_graph(2, 90 * MIB, true))), 0);
	CHECK_EQUAL(graph_charge(), 192 * MIB);
	/* What the former one does not use is given up for it. */
	CHECK_EQUAL(take_memory(graph_way, wrap(make_graph(1, 65 * MIB, true))), 0);
	CHECK_EQUAL(graph_charge(), 96 * MIB);
	CHECK(end_watch() <= WAY_LIMIT);
	CHECK(card_most() <= WAY_LIMIT);
}

TEST(every_way_to_take_a_graph_s_memory_is_limited)
{
	for (graph_way = 0; graph_way < WAYS; graph_way++) {
		is_inside = graph_way % 2;
		maker = (int)graph_way % MAKERS;
		in_world(NULL, body_way);
	}
}

/* ---- a graph that was changed ---- */

TEST_IN_WORLD(NULL, a_graph_that_was_changed_is_limited)
{
	struct ll_cu_graph_update_info info;
	struct ll_cu_graph_node *node;
	enum ll_cu_graph_update_result result;
	struct ll_cu_graph_exec *exec;
	govern(WAY_LIMIT);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	/* Whatever the driver says of it, the next launch is held to what the graph has then. */
	for (maker = 0; maker < MAKERS; maker++) {
		CHECK_EQUAL(make_exec_of(make_graph(1, 200 * MIB, true), &exec), 0);
		if (maker == 0)
			cu.cuGraphExecUpdate_v1(exec, make_graph(1, 200 * MIB, true), &node, &result);
		else
			cu.cuGraphExecUpdate(exec, make_graph(1, 200 * MIB, true), &info);
		CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		CHECK_EQUAL(graph_charge(), 224 * MIB);
	}
	CHECK(card_most() <= WAY_LIMIT);
}

/* ---- a driver that takes more than was foreseen ---- */

TEST_IN_WORLD(NULL, memory_of_graphs_that_was_not_foreseen_is_given_back)
{
	struct ll_cu_graph_exec *exec;
	govern(CONTEXT_BYTES + 100 * MIB);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, make_graph(1, 60 * MIB, true), 0), 0);
	CHECK_EQUAL(simctl("card 0 pool-extra 96M"), 0);
	CHECK_EQUAL(cu.cuGraphUpload(exec, stream), 0);
	CHECK_EQUAL(simctl("card 0 pool-extra 0"), 0);
	/* It is charged, and given back as soon as it can be: an upload alone does not use it. */
	CHECK_EQUAL(graph_charge(), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(graph_charge(), 64 * MIB);
}

/* ---- several at once ---- */

enum { THREADS = 8, PROCESSES = 3, LAUNCHES = 16 };

#define CROWD_LIMIT (2 * GIB)

static enum governed_way way;
static struct ll_cu_context *shared_context;
static pthread_barrier_t start;
static uint64_t graph_bytes;
static bool graph_frees;
static _Atomic unsigned served, refused;

static void *launch_graphs(void *arg)
{
	struct ll_cu_graph_exec *exec;
	CHECK_EQUAL(cu.cuCtxSetCurrent(shared_context), 0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, make_graph(1, graph_bytes, graph_frees), 0), 0);
	pthread_barrier_wait(&start);
	for (int i = 0; i < (graph_frees ? LAUNCHES : 1); i++) {
		ll_cu_result status = cu.cuGraphLaunch(exec, stream);
		CHECK(status == 0 || status == LL_CUDA_ERROR_OUT_OF_MEMORY);
		status ? refused++ : served++;
		if (i % 8 == 7)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	return arg;
}

static void run_threads(unsigned count)
{
	pthread_t threads[THREADS];
	CHECK_EQUAL(pthread_barrier_init(&start, NULL, count), 0);
	for (unsigned i = 0; i < count; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, launch_graphs, NULL), 0);
	for (unsigned i = 0; i < count; i++)
		CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
}

static void body_threads(void)
{
	govern_in_way(way, CROWD_LIMIT);
	shared_context = open_context(0);
	begin_watch();
	run_threads(THREADS);
	CHECK(end_watch() <= CROWD_LIMIT);
	CHECK(card_most() <= CROWD_LIMIT);
	/* 1520 MiB are left: for eight graphs of 160 MiB, and for three of 384 at a time. */
	if (!graph_frees)
		CHECK_EQUAL(served, 3);
	else if (graph_bytes == 160 * MIB)
		CHECK_EQUAL(refused, 0);
	CHECK_EQUAL(graph_charge(), graph_frees ? 0 : 3 * 384 * MIB);
	CHECK_EQUAL(served + refused, THREADS * (graph_frees ? LAUNCHES : 1));
}

TEST(threads_that_launch_graphs_stay_within_the_limit)
{
	for (way = 0; way < GOVERNED_WAYS; way++) {
		for (int i = 0; i < 3; i++) {
			graph_bytes = (i == 0 ? 160 : 380) * MIB;
			graph_frees = i < 2;
			in_world(NULL, body_threads);
		}
	}
}

static _Atomic int *opened, *ended;

static void one_of_several(void)
{
	shared_context = open_context(0);
	++*opened;
	WAIT_FOR(*opened == PROCESSES);
	run_threads(2);
	/* The memory of one that ends is on the card for a moment longer than it is charged. */
	++*ended;
	WAIT_FOR(*ended == PROCESSES);
}

static void body_processes(void)
{
	pid_t pids[PROCESSES];
	uint64_t limit = PROCESSES * CONTEXT_BYTES + 500 * MIB;
	opened = mmap(NULL, 2 * sizeof *opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(opened != MAP_FAILED);
	ended = opened + 1;
	govern_in_way(way, limit);
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = spawn(one_of_several);
	for (int i = 0; i < PROCESSES; i++)
		join(pids[i]);
	CHECK_EQUAL(charged(), 0);
	CHECK(card_most() <= limit);
}

TEST(processes_that_launch_graphs_stay_within_the_limit)
{
	graph_bytes = 120 * MIB;
	graph_frees = true;
	for (way = 0; way < GOVERNED_WAYS; way++)
		in_world(NULL, body_processes);
}
