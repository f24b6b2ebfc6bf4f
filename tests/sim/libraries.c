/* Libraries of kernels: of no context, used in several. */
#include "process.h"

#define MS UINT64_C(1000000)

static const char ptx[] = ".version 7.4\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 counter;\n"
			  ".visible .entry work_ns(.param .u64 length_ns) { ret; }\n"
			  ".visible .entry second(.param .u32 a, .param .u64 b) { ret; }\n";

static struct ll_cu_library *load(void)
{
	struct ll_cu_library *library;
	CHECK_EQUAL(cu.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), 0);
	return library;
}

static struct ll_cu_kernel *kernel_of(struct ll_cu_library *library)
{
	struct ll_cu_kernel *kernel;
	CHECK_EQUAL(cu.cuLibraryGetKernel(&kernel, library, "work_ns"), 0);
	return kernel;
}

TEST_IN_WORLD(NULL, a_kernel_runs_in_every_context_it_is_launched_in)
{
	struct ll_cu_function *in_first, *in_second;
	struct ll_cu_context *current;
	ll_cu_deviceptr a, b;
	size_t bytes;
	/* No context is needed to load. */
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	struct ll_cu_library *library = load();
	struct ll_cu_kernel *kernel = kernel_of(library);
	CHECK_EQUAL(cu.cuKernelGetFunction(&in_first, kernel), LL_CUDA_ERROR_INVALID_CONTEXT);
	struct ll_cu_context *first = open_context(0);
	CHECK_EQUAL(cu.cuKernelGetFunction(&in_first, kernel), 0);
	CHECK_EQUAL(cu.cuLibraryGetGlobal(&a, &bytes, library, "counter"), 0);
	CHECK_EQUAL(bytes, 4);
	struct ll_cu_context *second = open_context(0);
	CHECK_EQUAL(cu.cuKernelGetFunction(&in_second, kernel), 0);
	CHECK(in_first != in_second);
	CHECK_EQUAL(cu.cuLibraryGetGlobal(&b, NULL, library, "counter"), 0);
	CHECK(a != b);
	/* The kernel's own handle can be launched in either context; a function only in its own. */
	struct ll_cu_stream *s = new_stream();
	uint64_t length = MS;
	void *params[] = {&length};
	launch_timed((void *)kernel, s, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuLaunchKernel(in_first, 1, 1, 1, 32, 1, 1, 0, s, params, NULL), LL_CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQUAL(cu.cuCtxDestroy(second), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(first), 0);
	CHECK_EQUAL(cu.cuCtxGetCurrent(&current), 0);
	CHECK(current == first);
	launch_timed((void *)kernel, NULL, MS, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuLibraryUnload(library), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

TEST_IN_WORLD(NULL, libraries_and_kernels_answer_questions)
{
	struct ll_cu_kernel *kernels[3] = {0}, *kernel;
	struct ll_cu_library *library, *owner;
	struct ll_cu_module *module, *same;
	struct ll_cu_function *function;
	const char *name;
	unsigned count;
	size_t offset, bytes;
	int value, blocks;
	open_context(0);
	CHECK_EQUAL(cu.cuLibraryLoadData(&library, "rubbish", NULL, NULL, 0, NULL, NULL, 0),
		    LL_CUDA_ERROR_INVALID_IMAGE);
	CHECK_EQUAL(cu.cuLibraryLoadFromFile(&library, "/nowhere", NULL, NULL, 0, NULL, NULL, 0),
		    LL_CUDA_ERROR_FILE_NOT_FOUND);
	library = load();
	CHECK_EQUAL(cu.cuLibraryGetKernelCount(&count, library), 0);
	CHECK_EQUAL(count, 2);
	CHECK_EQUAL(cu.cuLibraryEnumerateKernels(kernels, 3, library), 0);
	CHECK(kernels[0] && kernels[1] && !kernels[2]);
	CHECK_EQUAL(cu.cuLibraryGetKernel(&kernel, library, "no_such"), LL_CUDA_ERROR_NOT_FOUND);
	CHECK_EQUAL(cu.cuLibraryGetKernel(&kernel, library, "second"), 0);
	CHECK_EQUAL(cu.cuKernelGetName(&name, kernel), 0);
	CHECK(strcmp(name, "second") == 0);
	CHECK_EQUAL(cu.cuKernelGetLibrary(&owner, kernel), 0);
	CHECK(owner == library);
	CHECK_EQUAL(cu.cuKernelGetParamInfo(kernel, 1, &offset, &bytes), 0);
	CHECK(offset == 8 && bytes == 8);
	CHECK_EQUAL(cu.cuKernelGetParamInfo(kernel, 2, &offset, &bytes), LL_CUDA_ERROR_INVALID_VALUE);
	const enum ll_cu_function_attribute shared = LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	CHECK_EQUAL(cu.cuKernelSetAttribute(shared, 100000, kernel, 0), 0);
	CHECK_EQUAL(cu.cuKernelGetAttribute(&value, shared, kernel, 0), 0);
	CHECK_EQUAL(value, 100000);
	CHECK_EQUAL(cu.cuKernelGetAttribute(&value, shared, kernel, 7), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (void *)kernel, 1024, 0), 0);
	CHECK_EQUAL(blocks, 2);
	/* The module behind it is the library's, not the program's. */
	CHECK_EQUAL(cu.cuLibraryGetModule(&module, library), 0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&function, module, "second"), 0);
	CHECK_EQUAL(cu.cuFuncGetModule(&same, function), 0);
	CHECK(same == module);
	CHECK_EQUAL(cu.cuFuncGetParamInfo(function, 0, &offset, &bytes), 0);
	CHECK(offset == 0 && bytes == 4);
	CHECK_EQUAL(cu.cuModuleUnload(module), LL_CUDA_ERROR_NOT_PERMITTED);
	CHECK_EQUAL(cu.cuLibraryUnload(library), 0);
	CHECK_EQUAL(cu.cuLibraryUnload(NULL), LL_CUDA_ERROR_INVALID_HANDLE);
}

TEST_IN_WORLD(NULL, a_node_may_name_a_kernel)
{
	struct ll_cu_graph *graph;
	struct ll_cu_graph_node *node;
	struct ll_cu_graph_exec *exec;
	struct ll_cu_kernel_params read;
	open_context(0);
	struct ll_cu_kernel *kernel = kernel_of(load());
	struct ll_cu_function *function;
	CHECK_EQUAL(cu.cuKernelGetFunction(&function, kernel), 0);
	uint64_t length = MS;
	void *params[] = {&length};
	struct ll_cu_kernel_params with_kernel = {.grid_x = 1,
						  .grid_y = 1,
						  .grid_z = 1,
						  .block_x = 32,
						  .block_y = 1,
						  .block_z = 1,
						  .params = params,
						  .kernel = kernel};
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddKernelNode(&node, graph, NULL, 0, &with_kernel), 0);
	CHECK_EQUAL(cu.cuGraphKernelNodeGetParams(node, &read), 0);
	CHECK(read.function == function);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}
