/* Graphs: their order, their nodes, what runs of them and what it takes. */
#include "process.h"

#include <stdatomic.h>

#define MS UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

typedef struct ll_cu_graph_node *node_t;

static struct ll_cu_graph *new_graph(void)
{
	struct ll_cu_graph *graph;
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	return graph;
}

static struct ll_cu_graph_exec *instantiate(struct ll_cu_graph *graph)
{
	struct ll_cu_graph_exec *exec;
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	return exec;
}

static void run(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream)
{
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
}

static struct ll_cu_kernel_params kernel_of(struct ll_cu_function *function, void **params)
{
	return (struct ll_cu_kernel_params){
	    .function = function,
	    .grid_x = 1,
	    .grid_y = 1,
	    .grid_z = 1,
	    .block_x = 32,
	    .block_y = 1,
	    .block_z = 1,
	    .params = params,
	};
}

static node_t add_kernel(struct ll_cu_graph *graph, struct ll_cu_function *function, uint64_t length_ns, node_t after)
{
	node_t node;
	void *params[] = {&length_ns};
	struct ll_cu_kernel_params kernel = kernel_of(function, params);
	CHECK_EQUAL(cu.cuGraphAddKernelNode(&node, graph, &after, after ? 1 : 0, &kernel), 0);
	return node;
}

static _Atomic int order[8];
static _Atomic int order_count;

static void note(void *user)
{
	atomic_store(&order[atomic_fetch_add(&order_count, 1) % 8], (int)(intptr_t)user);
}

static node_t add_note(struct ll_cu_graph *graph, int number)
{
	node_t node;
	struct ll_cu_host_params host = {note, (void *)(intptr_t)number};
	CHECK_EQUAL(cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host), 0);
	return node;
}

TEST_IN_WORLD(NULL, nodes_run_in_the_order_of_their_edges)
{
	struct ll_cu_graph_exec *exec;
	node_t culprit = NULL;
	enum ll_cu_graph_node_type type;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_graph *graph = new_graph();
	node_t third = add_note(graph, 3), first = add_note(graph, 1), second = add_note(graph, 2);
	node_t from[] = {first, second}, to[] = {second, third};
	CHECK_EQUAL(cu.cuGraphAddDependencies(graph, from, to, NULL, 2), 0);
	CHECK_EQUAL(cu.cuGraphAddDependencies_v1(graph, from, to, 1), LL_CUDA_ERROR_INVALID_VALUE); /* there already */
	CHECK_EQUAL(cu.cuGraphNodeGetType(third, &type), 0);
	CHECK_EQUAL(type, LL_CU_GRAPH_NODE_TYPE_HOST);
	exec = instantiate(graph);
	run(exec, s);
	CHECK_EQUAL(order_count, 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(order[i], i + 1);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	/* In a circle nothing can begin. */
	CHECK_EQUAL(cu.cuGraphAddDependencies(graph, &third, &first, NULL, 1), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate_v2(&exec, graph, &culprit, NULL, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK(culprit == first || culprit == second || culprit == third);
	CHECK_EQUAL(cu.cuGraphRemoveDependencies(graph, &third, &first, NULL, 1), 0);
	CHECK_EQUAL(cu.cuGraphDestroyNode(second), 0);
	order_count = 0;
	exec = instantiate(graph);
	run(exec, s);
	CHECK_EQUAL(order_count, 2);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
}

static struct ll_cu_event *new_event(void)
{
	struct ll_cu_event *event;
	CHECK_EQUAL(cu.cuEventCreate(&event, 0), 0);
	return event;
}

/* How long a launch takes on the card; the host's pace is hidden behind a kernel before it. */
static double launch_ms(struct ll_cu_graph_exec *exec, struct ll_cu_stream *stream, struct ll_cu_function *work)
{
	struct ll_cu_event *start = new_event(), *stop = new_event();
	float ms;
	launch_timed(work, stream, 200 * MS, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(start, stream), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK_EQUAL(cu.cuEventRecord(stop, stream), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(stop), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, stop), 0);
	CHECK_EQUAL(cu.cuEventDestroy(start), 0);
	CHECK_EQUAL(cu.cuEventDestroy(stop), 0);
	return (double)ms;
}

TEST_IN_WORLD(NULL, what_runs_is_changed_by_updates_alone)
{
	struct ll_cu_graph_update_info info;
	struct ll_cu_kernel_params read;
	unsigned is_enabled;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_graph *graph = new_graph(), *longer = new_graph(), *other = new_graph();
	node_t a = add_kernel(graph, work, 10 * MS, NULL), b = add_kernel(graph, work, 20 * MS, a);
	struct ll_cu_graph_exec *exec = instantiate(graph);
	CHECK_NEAR(launch_ms(exec, s, work), 30, 0.01);
	/* The graph may change as it likes; what runs is what it was. */
	uint64_t length_ns = 50 * MS;
	void *params[] = {&length_ns};
	struct ll_cu_kernel_params kernel = kernel_of(work, params);
	CHECK_EQUAL(cu.cuGraphKernelNodeSetParams(a, &kernel), 0);
	CHECK_EQUAL(cu.cuGraphKernelNodeGetParams(a, &read), 0);
	CHECK(read.function == work && *(uint64_t *)read.params[0] == 50 * MS && read.block_x == 32);
	CHECK_NEAR(launch_ms(exec, s, work), 30, 0.01);
	/* One node of what runs. */
	length_ns = 5 * MS;
	CHECK_EQUAL(cu.cuGraphExecKernelNodeSetParams(exec, b, &kernel), 0);
	CHECK_NEAR(launch_ms(exec, s, work), 15, 0.01);
	CHECK_EQUAL(cu.cuGraphNodeSetEnabled(exec, a, 0), 0);
	CHECK_EQUAL(cu.cuGraphNodeGetEnabled(exec, a, &is_enabled), 0);
	CHECK_EQUAL(is_enabled, 0);
	CHECK_NEAR(launch_ms(exec, s, work), 5, 0.01);
	CHECK_EQUAL(cu.cuGraphNodeSetEnabled(exec, a, 1), 0);
	/* All of it, from a graph of the same shape. */
	add_kernel(longer, work, 40 * MS, add_kernel(longer, work, 30 * MS, NULL));
	CHECK_EQUAL(cu.cuGraphExecUpdate(exec, longer, &info), 0);
	CHECK_EQUAL(info.result, LL_CU_GRAPH_EXEC_UPDATE_SUCCESS);
	CHECK_NEAR(launch_ms(exec, s, work), 70, 0.01);
	CHECK_EQUAL(cu.cuGraphExecKernelNodeSetParams(exec, b, &kernel), 0); /* nodes keep their names */
	CHECK_NEAR(launch_ms(exec, s, work), 35, 0.01);
	/* Another shape changes nothing. */
	add_kernel(other, work, MS, NULL);
	node_t unlike = add_note(other, 1);
	CHECK_EQUAL(cu.cuGraphExecUpdate(exec, other, &info), LL_CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK_EQUAL(info.result, LL_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	CHECK(info.error_node == unlike);
	CHECK_EQUAL(cu.cuGraphDestroyNode(unlike), 0);
	CHECK_EQUAL(cu.cuGraphExecUpdate(exec, other, &info), LL_CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK_EQUAL(info.result, LL_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	CHECK_NEAR(launch_ms(exec, s, work), 35, 0.01);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(NULL, s), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, nodes_of_every_kind_do_what_they_say)
{
	enum { ROWS = 3, WIDTH = 8, PITCH = 32 };
	ll_cu_deviceptr a, b, flag;
	uint8_t out[ROWS * WIDTH] = {0};
	void *page;
	node_t fill, copy, child, value, recorded, found;
	open_context(0);
	struct ll_cu_stream *s = new_stream(), *other = new_stream();
	struct ll_cu_event *event = new_event();
	struct ll_cu_graph *graph = new_graph(), *inner = new_graph(), *clone;
	CHECK_EQUAL(cu.cuMemAlloc(&a, ROWS * PITCH), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&b, ROWS * PITCH), 0);
	CHECK_EQUAL(cu.cuMemHostAlloc(&page, 4096, LL_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	flag = (uintptr_t)page;
	CHECK_EQUAL(cu.cuMemsetD8(b, 1, ROWS * PITCH), 0);
	struct ll_cu_memset_params fill_params = {a, PITCH, 9, 1, WIDTH, ROWS};
	CHECK_EQUAL(cu.cuGraphAddMemsetNode(&fill, inner, NULL, 0, &fill_params, NULL), 0);
	CHECK_EQUAL(cu.cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(inner), 0); /* it was cloned */
	struct ll_cu_memcpy3d copy_params = {
	    .from_type = LL_CU_MEMORYTYPE_DEVICE,
	    .from_device = a,
	    .from_pitch_bytes = PITCH,
	    .to_type = LL_CU_MEMORYTYPE_HOST,
	    .to_host = out,
	    .to_pitch_bytes = WIDTH,
	    .width_bytes = WIDTH,
	    .height = ROWS,
	    .depth = 1,
	};
	CHECK_EQUAL(cu.cuGraphAddMemcpyNode(&copy, graph, &child, 1, &copy_params, NULL), 0);
	union ll_cu_stream_mem_op op = {
	    .value = {.operation = LL_CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = flag, .value = UINT64_C(1) << 40}};
	struct ll_cu_graph_node_params any = {.type = LL_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
					      .mem_op = {.count = 1, .ops = &op}};
	CHECK_EQUAL(cu.cuGraphAddNode(&value, graph, &copy, NULL, 1, &any), 0);
	CHECK_EQUAL(cu.cuGraphAddEventRecordNode(&recorded, graph, &value, 1, event), 0);
	CHECK_EQUAL(cu.cuGraphClone(&clone, graph), 0);
	CHECK_EQUAL(cu.cuGraphNodeFindInClone(&found, copy, clone), 0);
	CHECK(found != copy);
	struct ll_cu_graph_exec *exec = instantiate(clone);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), 0);
	/* The event that the graph records holds up another stream. */
	CHECK_EQUAL(cu.cuStreamWaitEvent(other, event, 0), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(other), 0);
	CHECK_EQUAL(*(_Atomic uint64_t *)page, UINT64_C(1) << 40);
	for (int i = 0; i < ROWS * WIDTH; i++)
		CHECK_EQUAL(out[i], 9);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(clone), 0);
	any = (struct ll_cu_graph_node_params){.type = LL_CU_GRAPH_NODE_TYPE_CONDITIONAL};
	graph = new_graph();
	CHECK_EQUAL(cu.cuGraphAddNode(&value, graph, NULL, NULL, 0, &any), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
}

TEST_IN_WORLD(NULL, long_graphs_pass_and_one_graph_never_runs_beside_itself)
{
	enum { NODES = 3000 };
	open_context(0);
	struct ll_cu_stream *a = new_stream(), *b = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_graph *graph = new_graph();
	node_t node = NULL;
	for (int i = 0; i < NODES; i++)
		node = add_kernel(graph, work, 1000, node);
	struct ll_cu_graph_exec *exec = instantiate(graph);
	run(exec, a); /* more than a queue holds */
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	/* In two streams at once: one after the other. */
	graph = new_graph();
	add_kernel(graph, work, 300 * MS, NULL);
	exec = instantiate(graph);
	struct ll_cu_event *start = new_event(), *stop = new_event();
	float ms;
	CHECK_EQUAL(cu.cuEventRecord(start, a), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, a), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, b), 0);
	CHECK_EQUAL(cu.cuEventRecord(stop, b), 0);
	CHECK_EQUAL(cu.cuEventSynchronize(stop), 0);
	CHECK_EQUAL(cu.cuEventElapsedTime(&ms, start, stop), 0);
	CHECK(ms >= 600);
}

static size_t free_bytes(void)
{
	size_t free_now, total;
	CHECK_EQUAL(cu.cuMemGetInfo(&free_now, &total), 0);
	return free_now;
}

static uint64_t graph_memory(enum ll_cu_graph_mem_attribute attribute)
{
	uint64_t bytes;
	CHECK_EQUAL(cu.cuDeviceGetGraphMemAttribute(0, attribute, &bytes), 0);
	return bytes;
}

static ll_cu_deviceptr add_alloc(struct ll_cu_graph *graph, size_t bytes, node_t *ret_node)
{
	struct ll_cu_mem_alloc_params alloc = {
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
	    .bytes = bytes,
	};
	CHECK_EQUAL(cu.cuGraphAddMemAllocNode(ret_node, graph, NULL, 0, &alloc), 0);
	CHECK(alloc.address);
	return alloc.address;
}

TEST_IN_WORLD(NULL, graph_memory_is_taken_by_launches)
{
	node_t alloc, fill;
	struct ll_cu_graph *clone;
	struct ll_cu_graph_exec *second;
	uint32_t value;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	size_t before = free_bytes();
	/* Taken by the launch, not by the node. */
	struct ll_cu_graph *graph = new_graph();
	ll_cu_deviceptr address = add_alloc(graph, 64 * MIB, &alloc);
	struct ll_cu_memset_params fill_params = {address, 0, 77, 4, 16, 1};
	CHECK_EQUAL(cu.cuGraphAddMemsetNode(&fill, graph, &alloc, 1, &fill_params, NULL), 0);
	struct ll_cu_graph_exec *exec = instantiate(graph);
	CHECK_EQUAL(free_bytes(), before);
	run(exec, s);
	CHECK_EQUAL(before - free_bytes(), 64 * MIB);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&value, address, 4), 0);
	CHECK_EQUAL(value, 77);
	/* The program has to free it before the next launch. */
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	run(exec, s);
	CHECK_EQUAL(before - free_bytes(), 64 * MIB);
	CHECK_EQUAL(cu.cuGraphClone(&clone, graph), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(cu.cuGraphInstantiate(&second, graph, 0), LL_CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(before - free_bytes(), 64 * MIB); /* the program's still */
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuMemFree(address), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, s), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	/* Kept for graphs to come, until it is trimmed. */
	CHECK_EQUAL(before - free_bytes(), 64 * MIB);
	CHECK_EQUAL(graph_memory(LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 64 * MIB);
	CHECK_EQUAL(graph_memory(LL_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 64 * MIB);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(free_bytes(), before);
	CHECK_EQUAL(graph_memory(LL_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
	CHECK_EQUAL(graph_memory(LL_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	CHECK_EQUAL(graph_memory(LL_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 64 * MIB);
}

TEST_IN_WORLD(NULL, graph_memory_that_is_left_is_for_the_next_graph)
{
	node_t alloc, release;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	size_t before = free_bytes();
	/* It can be launched again and again. */
	struct ll_cu_graph *graph = new_graph();
	ll_cu_deviceptr address = add_alloc(graph, 1000, &alloc);
	CHECK_EQUAL(cu.cuGraphAddMemFreeNode(&release, graph, &alloc, 1, address), 0);
	CHECK_EQUAL(cu.cuGraphAddMemFreeNode(&release, graph, &alloc, 1, address), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuGraphAddMemFreeNode(&release, graph, &alloc, 1, 4096), LL_CUDA_ERROR_INVALID_VALUE);
	struct ll_cu_graph_exec *exec = instantiate(graph);
	run(exec, s);
	run(exec, s);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	run(exec, s);
	CHECK_EQUAL(before - free_bytes(), 32 * MIB);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	/* What it leaves is the next one's. */
	graph = new_graph();
	address = add_alloc(graph, 2000, &alloc);
	exec = instantiate(graph);
	run(exec, s);
	CHECK_EQUAL(before - free_bytes(), 32 * MIB);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0); /* in use */
	CHECK_EQUAL(before - free_bytes(), 32 * MIB);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, s), 0);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(free_bytes(), before);
	/* Where there is no room, the launch says so. */
	graph = new_graph();
	add_alloc(graph, before + MIB, &alloc);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, LL_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	CHECK_EQUAL(free_bytes(), before);
}

static void die_in_a_launch(void)
{
	node_t alloc;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_graph *graph = new_graph();
	add_alloc(graph, 4096 * MIB, &alloc);
	add_kernel(graph, get_kernel("work_ns"), 60000 * MS, alloc);
	CHECK_EQUAL(cu.cuGraphLaunch(instantiate(graph), s), 0);
	ready();
}

TEST_IN_WORLD(NULL, a_killed_process_leaves_nothing_of_its_graphs)
{
	/* Children first: a process that has used CUDA cannot be forked. */
	spawn_and_kill(die_in_a_launch);
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_graph *graph = new_graph();
	add_kernel(graph, get_kernel("work_ns"), MS, NULL);
	/* The card is free for others' kernels, and the memory comes back. */
	run(instantiate(graph), s);
	size_t free_now, total;
	CHECK_EQUAL(cu.cuMemGetInfo(&free_now, &total), 0);
	WAIT_FOR(total - free_bytes() < 1024 * MIB);
}

TEST_IN_WORLD("fail cuGraphLaunch CUDA_ERROR_LAUNCH_FAILED count 1", scenarios_can_make_graph_launches_fail)
{
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_graph *graph = new_graph();
	add_note(graph, 1);
	struct ll_cu_graph_exec *exec = instantiate(graph);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(order_count, 0);
	run(exec, s);
	CHECK_EQUAL(order_count, 1);
}

TEST_IN_WORLD(NULL, a_launch_into_a_capture_becomes_a_graph_within_it)
{
	struct ll_cu_graph *outer;
	node_t node;
	size_t count = 1;
	enum ll_cu_graph_node_type type;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_graph *graph = new_graph();
	add_note(graph, 1);
	struct ll_cu_graph_exec *exec = instantiate(graph);
	CHECK_EQUAL(cu.cuStreamBeginCapture(s, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, s), 0);
	CHECK_EQUAL(cu.cuStreamEndCapture(s, &outer), 0);
	CHECK_EQUAL(cu.cuGraphGetRootNodes(outer, &node, &count), 0);
	CHECK_EQUAL(cu.cuGraphNodeGetType(node, &type), 0);
	CHECK_EQUAL(type, LL_CU_GRAPH_NODE_TYPE_GRAPH);
	CHECK_EQUAL(order_count, 0);
	CHECK_EQUAL(cu.cuGraphExecDestroy(exec), 0);
	run(instantiate(outer), s);
	CHECK_EQUAL(order_count, 1);
}
