/* graphs child|update|captured: memory that graphs take, launched by eight threads. */
#include <pthread.h>

#include "case.h"

enum { THREADS = 8, LAUNCHES = 12 };

static struct ll_cu_context *context;
static const char *kind;
static pthread_barrier_t start;

static struct ll_cu_graph *allocating(size_t bytes, bool frees)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_node *alloc, *node;
	struct ll_cu_mem_alloc_params params = {
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}},
	    .bytes = bytes};
	TRY(cuGraphCreate(&graph, 0));
	TRY(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	if (frees)
		TRY(cuGraphAddMemFreeNode(&node, graph, &alloc, 1, params.address));
	return graph;
}

/* Three levels: the memory nodes are in the innermost one, and in each of two on the second. */
static struct ll_cu_graph *nested(size_t bytes)
{
	struct ll_cu_graph *outer, *middle;
	struct ll_cu_graph_node *node;
	TRY(cuGraphCreate(&outer, 0));
	for (int i = 0; i < 2; i++) {
		struct ll_cu_graph_node_params params = {
		    .type = LL_CU_GRAPH_NODE_TYPE_GRAPH,
		    .child = {.graph = allocating(bytes, true), .ownership = LL_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
		TRY(cuGraphCreate(&middle, 0));
		TRY(cuGraphAddNode_v2(&node, middle, NULL, NULL, 0, &params));
		params.child.graph = middle;
		TRY(cuGraphAddNode_v2(&node, outer, NULL, NULL, 0, &params));
	}
	return outer;
}

static struct ll_cu_graph *captured(struct ll_cu_stream *stream, size_t bytes, bool frees)
{
	struct ll_cu_graph *graph;
	ll_cu_deviceptr address, second;
	TRY(cuStreamBeginCapture_v2(stream, LL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	TRY(cuMemAllocAsync(&address, bytes, stream));
	TRY(cuMemAllocAsync(&second, bytes, stream));
	TRY(cuMemFreeAsync(second, stream));
	if (frees)
		TRY(cuMemFreeAsync(address, stream));
	TRY(cuStreamEndCapture(stream, &graph));
	return graph;
}

/* Whatever the driver says of the update, what is launched after it is what counts. */
static void update(struct ll_cu_graph_exec *exec, size_t bytes)
{
	struct ll_cu_graph_update_info info;
	struct ll_cu_graph *graph = allocating(bytes, true);
	cuGraphExecUpdate_v2(exec, graph, &info);
	TRY(cuGraphDestroy(graph));
}

static void *launch(void *arg)
{
	struct ll_cu_graph_exec *exec;
	struct ll_cu_graph *graph;
	size_t number = (size_t)(uintptr_t)arg;
	TRY(cuCtxSetCurrent(context));
	struct ll_cu_stream *stream = new_stream();
	unsigned long long flags = 0;
	if (strcmp(kind, "child") == 0)
		graph = nested((100 + 40 * number) * MIB);
	else if (strcmp(kind, "update") == 0)
		graph = allocating(16 * MIB, true);
	else
		graph = captured(stream, (60 + 30 * number) * MIB, number % 2);
	if (strcmp(kind, "captured") == 0 && number % 4 == 0)
		flags = LL_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	TRY(cuGraphInstantiateWithFlags(&exec, graph, flags));
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < LAUNCHES; i++) {
		if (strcmp(kind, "update") == 0 && i)
			update(exec, (16 + 64 * i) * MIB);
		ll_cu_result status = cuGraphLaunch(exec, stream);
		/* What its graph keeps, a second launch may not take again: the driver says that it is invalid. */
		if (status != LL_CUDA_ERROR_INVALID_VALUE)
			MADE(status);
		if (i % 3 == number % 3)
			TRY(cuStreamSynchronize(stream));
	}
	TRY(cuStreamSynchronize(stream));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	NEED(argc > 1);
	kind = argv[1];
	context = begin();
	NEED(pthread_barrier_init(&start, NULL, THREADS) == 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		NEED(pthread_create(&threads[i], NULL, launch, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	full();
	return 0;
}
