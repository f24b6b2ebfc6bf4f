/* Memory that graphs allocate: charged when they have it, and refused beyond the limit. */
#include "governed.h"

static uint64_t graph_charge(void)
{
	return charged() - CONTEXT_BYTES;
}

static void body_captured(void)
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

static void memory_of_graphs_that_were_put_together_is_charged(void **state)
{
	(void)state;
	for (node_way = 0; node_way < 4; node_way++)
		in_world("driver 610.10 cuda 13.4", body_node);
}

static void memory_of_graphs_is_charged_when_they_have_it(void **state)
{
	(void)state;
	in_world(NULL, body_captured);
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

static void body_graph_over(void)
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

static void a_graph_whose_memory_is_over_the_limit_is_refused(void **state)
{
	(void)state;
	in_world(NULL, body_graph_over);
}

/* What graphs may take is known only as the sum of all that there ever were. A program that makes one after the other
 * comes to a sum beyond its limit, and each launch would be an upload, and take reserve from others, for ever. */
static void body_graph_again(void)
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
	CHECK_EQUAL(simctl("fail cuGraphUpload* CUDA_ERROR_OUT_OF_MEMORY"), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(cu.cuGraphLaunch(one, stream), 0);
		CHECK_EQUAL(cu.cuGraphLaunch(other, stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	/* what gave its memory back has to ask for it again, and so has one of the same name */
	CHECK_EQUAL(cu.cuDeviceGraphMemTrim(0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(one, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuGraphExecDestroy(one), 0);
	one = make_exec(stream, 100 * MIB, true);
	CHECK_EQUAL(cu.cuGraphLaunch(one, stream), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

static void a_graph_that_has_its_memory_is_not_uploaded_again(void **state)
{
	(void)state;
	in_world(NULL, body_graph_again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(memory_of_graphs_is_charged_when_they_have_it),
	    cmocka_unit_test(a_graph_whose_memory_is_over_the_limit_is_refused),
	    cmocka_unit_test(a_graph_that_has_its_memory_is_not_uploaded_again),
	    cmocka_unit_test(memory_of_graphs_that_were_put_together_is_charged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
