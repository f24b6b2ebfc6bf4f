/*
 * The hooks of abi/cuda.def that pass, as calls that use the card (shim/time/driver_calls.h): each call is held while
 * the calls are shut, its thread is found while the simulated driver works, and the driver gets its arguments. The
 * library is linked in, so that the test can use its slow side and call hooks by their symbols.
 */
#include "../sim/process.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/time/driver_calls.h"

#define MIB (UINT64_C(1) << 20)
#define SHAREABLE LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
enum { BYTES = 64 };

/* ---- what the calls use ---- */

static const char ptx[] = ".version 7.4\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 counter;\n"
			  ".visible .entry work_ns(.param .u64 length_ns) { ret; }\n";

static struct ll_cu_context *context, *peer;
static struct ll_cu_stream *stream, *made_stream;
static char host[BYTES];
static ll_cu_deviceptr card, managed, block, spare_range, range, made_address;
static size_t bytes = BYTES, first_of, made_bytes;
static unsigned long long access_flags;
static ll_cu_deviceptr_v1 old_base;
static unsigned int old_bytes;
static struct ll_cu_context *context_of;
static struct ll_cu_array *array;
static struct ll_cu_mem_location here = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE};
static union ll_cu_stream_mem_op operation;
static struct ll_cu_ipc_mem_handle memory_letter;
static struct ll_cu_ipc_event_handle event_letter;
static struct ll_cu_event *event, *made_event;
static ll_cu_mem_handle physical;
static struct ll_cu_mem_pool *pool, *imported_pool, *made_pool;
static struct ll_cu_mem_pool_pointer pointer;
static struct ll_cu_mem_access_desc access_here = {.location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE},
						   .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static int pool_fd, made_fd;
static struct ll_cu_external_memory *external;
static struct ll_cu_external_buffer_desc buffer_of_it = {.bytes = 2 * MIB};
static struct ll_cu_external_mipmap_desc mipmap_of_it = {
    .array = {.width = 64, .height = 64, .format = LL_CU_AD_FORMAT_FLOAT, .channels = 4}, .levels = 1};
static struct ll_cu_mipmapped_array *made_mipmap;
static struct ll_cu_graph *graph, *spare_graph;
static struct ll_cu_graph_exec *exec, *made_exec;
static struct ll_cu_graph_instantiate_params instantiate;
static struct ll_cu_graph_update_info updated;
static enum ll_cu_graph_update_result update_result;
static struct ll_cu_graph_node *node;
static struct ll_cu_green_context *green;
static struct ll_cu_module *module, *spare_module, *made_module;
static struct ll_cu_library *library, *spare_library, *made_library;
static struct ll_cu_kernel *kernel, *made_kernel;
static struct ll_cu_function *function, *made_function;
static struct ll_cu_graph *kernel_graph;
static struct ll_cu_graph_exec *kernel_exec;
static struct ll_cu_graph_node *kernel_node, *made_node;
static uint64_t length_ns = 1000;
static void *kernel_arguments[] = {&length_ns};
static struct ll_cu_kernel_params params;
static struct ll_cu_kernel_params_v1 old_params;
static int answer, second_answer;

static void prepare_shared(void)
{
	struct ll_cu_mem_pool_props pool_props = {
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .handle_types = SHAREABLE, .location = here};
	struct ll_cu_mem_allocation_prop prop = {
	    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .handle_types = SHAREABLE, .location = here};
	struct ll_cu_external_memory_desc outside = {.type = LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
						     .handle.fd = memfd_create("external", 0),
						     .bytes = 4 * MIB};
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &pool_props), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&block, BYTES, pool, stream), 0);
	CHECK_EQUAL(cu.cuMemPoolExportToShareableHandle(&pool_fd, pool, SHAREABLE, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolExportPointer(&pointer, block), 0);
	CHECK_EQUAL(cu.cuMemPoolImportFromShareableHandle(&imported_pool, (void *)(intptr_t)pool_fd, SHAREABLE, 0), 0);
	CHECK_EQUAL(cu.cuMemCreate(&physical, 2 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&spare_range, 2 * MIB, 0, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemMap(range, 2 * MIB, 0, physical, 0), 0);
	CHECK_EQUAL(ftruncate(outside.handle.fd, 4 * MIB), 0);
	CHECK_EQUAL(cu.cuImportExternalMemory(&external, &outside), 0);
	CHECK_EQUAL(cu.cuIpcGetMemHandle(&memory_letter, card), 0);
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuIpcGetEventHandle(&event_letter, event), 0);
}

static void prepare_green(void)
{
	CHECK_EQUAL(cu.cuGreenCtxCreate(&green, new_green_desc(), 0, LL_CU_GREEN_CTX_DEFAULT_STREAM), 0);
}

static void prepare_code(void)
{
	CHECK_EQUAL(cu.cuModuleLoadData(&module, ptx), 0);
	CHECK_EQUAL(cu.cuModuleLoadData(&spare_module, ptx), 0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&function, module, "work_ns"), 0);
	CHECK_EQUAL(cu.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), 0);
	CHECK_EQUAL(cu.cuLibraryLoadData(&spare_library, ptx, NULL, NULL, 0, NULL, NULL, 0), 0);
	CHECK_EQUAL(cu.cuLibraryGetKernel(&kernel, library, "work_ns"), 0);
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddEmptyNode(&node, graph, NULL, 0), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphCreate(&spare_graph, 0), 0);
	params = (struct ll_cu_kernel_params){function, 1, 1, 1, 1, 1, 1, .params = kernel_arguments};
	old_params = (struct ll_cu_kernel_params_v1){function, 1, 1, 1, 1, 1, 1, .params = kernel_arguments};
	CHECK_EQUAL(cu.cuGraphCreate(&kernel_graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddKernelNode(&kernel_node, kernel_graph, NULL, 0, &params), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&kernel_exec, kernel_graph, 0), 0);
}

static void prepare(void)
{
	struct ll_cu_array_descriptor shape = {
	    .width = BYTES, .height = 1, .format = LL_CU_AD_FORMAT_UNSIGNED_INT8, .channels = 1};
	peer = open_context(0);
	context = open_context(0);
	stream = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&card, MIB), 0);
	CHECK_EQUAL(cu.cuMemsetD8(card, 0, MIB), 0);
	CHECK_EQUAL(cu.cuMemAllocManaged(&managed, BYTES, LL_CU_MEM_ATTACH_GLOBAL), 0);
	CHECK_EQUAL(cu.cuArrayCreate(&array, &shape), 0);
	operation.value.operation = LL_CU_STREAM_MEM_OP_WRITE_VALUE_32;
	operation.value.address = card;
	prepare_shared();
	prepare_green();
	prepare_code();
}

/* ---- the calls ---- */

/*
 * CALL(symbol, what the simulator answers, args)
 * BOTH(symbol, suffix, what the simulator answers, args)   the same, and its variant symbol##suffix
 */
#define CALLS                                                                                                          \
	BOTH(cuMemcpyHtoD_v2, _ptds, SUCCESS, (card, host, BYTES))                                                     \
	BOTH(cuMemcpyHtoDAsync_v2, _ptsz, SUCCESS, (card, host, BYTES, stream))                                        \
	BOTH(cuMemcpyDtoHAsync_v2, _ptsz, SUCCESS, (host, card, BYTES, stream))                                        \
	BOTH(cuMemcpyHtoA_v2, _ptds, SUCCESS, (array, 0, host, BYTES))                                                 \
	BOTH(cuMemcpyHtoAAsync_v2, _ptsz, SUCCESS, (array, 0, host, BYTES, stream))                                    \
	BOTH(cuMemcpyAtoH_v2, _ptds, SUCCESS, (host, array, 0, BYTES))                                                 \
	BOTH(cuMemcpyAtoHAsync_v2, _ptsz, SUCCESS, (host, array, 0, BYTES, stream))                                    \
	BOTH(cuMemPrefetchAsync, _ptsz, SUCCESS, (managed, BYTES, 0, stream))                                          \
	BOTH(cuMemPrefetchAsync_v2, _ptsz, SUCCESS, (managed, BYTES, here, 0, stream))                                 \
	BOTH(cuMemPrefetchBatchAsync, _ptsz, SUCCESS, (&managed, &bytes, 1, &here, &first_of, 1, 0, stream))           \
	BOTH(cuMemDiscardAndPrefetchBatchAsync, _ptsz, SUCCESS, (&managed, &bytes, 1, &here, &first_of, 1, 0, stream)) \
	BOTH(cuMemDiscardBatchAsync, _ptsz, SUCCESS, (&managed, &bytes, 1, 0, stream))                                 \
	CALL(cuMemAdvise, SUCCESS, (managed, BYTES, LL_CU_MEM_ADVISE_SET_READ_MOSTLY, 0))                              \
	CALL(cuMemAdvise_v2, SUCCESS, (managed, BYTES, LL_CU_MEM_ADVISE_SET_READ_MOSTLY, here))                        \
	BOTH(cuStreamAttachMemAsync, _ptsz, SUCCESS, (stream, managed, 0, LL_CU_MEM_ATTACH_GLOBAL))                    \
	BOTH(cuMemBatchDecompressAsync, _ptsz, ERROR_NOT_SUPPORTED, ((void *)host, 1, 0, &made_bytes, stream))         \
	BOTH(cuStreamWaitEvent, _ptsz, SUCCESS, (stream, event, 0))                                                    \
	BOTH(cuStreamWaitValue32, _ptsz, SUCCESS, (stream, card, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))                      \
	BOTH(cuStreamWaitValue32_v2, _ptsz, SUCCESS, (stream, card, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))                   \
	BOTH(cuStreamWaitValue64, _ptsz, SUCCESS, (stream, card, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))                      \
	BOTH(cuStreamWaitValue64_v2, _ptsz, SUCCESS, (stream, card, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))                   \
	BOTH(cuStreamWriteValue32, _ptsz, SUCCESS, (stream, card, 0, 0))                                               \
	BOTH(cuStreamWriteValue32_v2, _ptsz, SUCCESS, (stream, card, 0, 0))                                            \
	BOTH(cuStreamWriteValue64, _ptsz, SUCCESS, (stream, card, 0, 0))                                               \
	BOTH(cuStreamWriteValue64_v2, _ptsz, SUCCESS, (stream, card, 0, 0))                                            \
	BOTH(cuStreamBatchMemOp, _ptsz, SUCCESS, (stream, 1, &operation, 0))                                           \
	BOTH(cuStreamBatchMemOp_v2, _ptsz, SUCCESS, (stream, 1, &operation, 0))                                        \
	CALL(cuIpcGetMemHandle, SUCCESS, (&memory_letter, card))                                                       \
	CALL(cuIpcOpenMemHandle, ERROR_INVALID_CONTEXT, (&made_address, memory_letter, 1))                             \
	CALL(cuIpcOpenMemHandle_v2, ERROR_INVALID_CONTEXT, (&made_address, memory_letter, 1))                          \
	CALL(cuIpcCloseMemHandle, ERROR_INVALID_VALUE, (card))                                                         \
	CALL(cuIpcGetEventHandle, SUCCESS, (&event_letter, event))                                                     \
	CALL(cuIpcOpenEventHandle, SUCCESS, (&made_event, event_letter))                                               \
	CALL(cuMemExportToShareableHandle, SUCCESS, (&made_fd, physical, SHAREABLE, 0))                                \
	CALL(cuMemGetHandleForAddressRange, ERROR_NOT_SUPPORTED,                                                       \
	     (&made_fd, card, MIB, LL_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0))                                         \
	CALL(cuMemGetAccess, SUCCESS, (&access_flags, &here, range))                                                   \
	CALL(cuMemGetAddressRange, ERROR_INVALID_CONTEXT, (&old_base, &old_bytes, 0))                                  \
	CALL(cuPointerGetAttribute, SUCCESS, (&context_of, LL_CU_POINTER_ATTRIBUTE_CONTEXT, card))                     \
	CALL(cuPointerGetAttributes, ERROR_INVALID_VALUE, (0, NULL, NULL, card))                                       \
	CALL(cuPointerSetAttribute, ERROR_INVALID_VALUE, (NULL, LL_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, card))            \
	CALL(cuMemGetAddressRange_v2, SUCCESS, (&made_address, &made_bytes, card))                                     \
	CALL(cuExternalMemoryGetMappedBuffer, SUCCESS, (&made_address, external, &buffer_of_it))                       \
	CALL(cuExternalMemoryGetMappedMipmappedArray, SUCCESS, (&made_mipmap, external, &mipmap_of_it))                \
	CALL(cuMemPoolExportToShareableHandle, SUCCESS, (&made_fd, pool, SHAREABLE, 0))                                \
	CALL(cuMemPoolImportFromShareableHandle, SUCCESS, (&made_pool, (void *)(intptr_t)pool_fd, SHAREABLE, 0))       \
	CALL(cuMemPoolExportPointer, SUCCESS, (&pointer, block))                                                       \
	CALL(cuMemPoolImportPointer, SUCCESS, (&made_address, imported_pool, &pointer))                                \
	CALL(cuMemAddressReserve, SUCCESS, (&made_address, 2 * MIB, 0, 0, 0))                                          \
	CALL(cuMemAddressFree, SUCCESS, (spare_range, 2 * MIB))                                                        \
	CALL(cuMemSetAccess, SUCCESS, (range, 2 * MIB, &access_here, 1))                                               \
	BOTH(cuMemMapArrayAsync, _ptsz, ERROR_NOT_SUPPORTED, ((void *)host, 1, stream))                                \
	CALL(cuMulticastBindMem, ERROR_INVALID_VALUE, (physical, 0, physical, 0, MIB, 0))                              \
	CALL(cuMulticastBindMem_v2, ERROR_INVALID_VALUE, (physical, 0, 0, physical, 0, MIB, 0))                        \
	CALL(cuMulticastBindAddr, ERROR_INVALID_VALUE, (physical, 0, card, MIB, 0))                                    \
	CALL(cuMulticastBindAddr_v2, ERROR_INVALID_VALUE, (physical, 0, 0, card, MIB, 0))                              \
	CALL(cuMulticastUnbind, ERROR_INVALID_VALUE, (physical, 0, 0, MIB))                                            \
	CALL(cuCtxEnablePeerAccess, ERROR_PEER_ACCESS_UNSUPPORTED, (peer, 0))                                          \
	CALL(cuCtxDisablePeerAccess, ERROR_PEER_ACCESS_NOT_ENABLED, (peer))                                            \
	CALL(cuCtxResetPersistingL2Cache, SUCCESS, ())                                                                 \
	CALL(cuGraphInstantiate, SUCCESS, (&made_exec, graph, &node, host, BYTES))                                     \
	CALL(cuGraphInstantiate_v2, SUCCESS, (&made_exec, graph, &node, host, BYTES))                                  \
	CALL(cuGraphInstantiateWithFlags, SUCCESS, (&made_exec, graph, 0))                                             \
	BOTH(cuGraphInstantiateWithParams, _ptsz, SUCCESS, (&made_exec, graph, &instantiate))                          \
	CALL(cuGraphExecUpdate, SUCCESS, (exec, graph, &node, &update_result))                                         \
	CALL(cuGraphExecUpdate_v2, SUCCESS, (exec, graph, &updated))                                                   \
	CALL(cuGraphDestroy, SUCCESS, (spare_graph))                                                                   \
	CALL(cuStreamCreate, SUCCESS, (&made_stream, LL_CU_STREAM_NON_BLOCKING))                                       \
	CALL(cuStreamCreateWithPriority, SUCCESS, (&made_stream, LL_CU_STREAM_NON_BLOCKING, 0))                        \
	CALL(cuGreenCtxStreamCreate, SUCCESS, (&made_stream, green, LL_CU_STREAM_NON_BLOCKING, 0))                     \
	CALL(cuModuleLoad, ERROR_FILE_NOT_FOUND, (&made_module, "/nowhere/module.ptx"))                                \
	CALL(cuModuleLoadData, SUCCESS, (&made_module, ptx))                                                           \
	CALL(cuModuleLoadDataEx, SUCCESS, (&made_module, ptx, 0, NULL, NULL))                                          \
	CALL(cuModuleLoadFatBinary, SUCCESS, (&made_module, ptx))                                                      \
	CALL(cuModuleUnload, SUCCESS, (spare_module))                                                                  \
	CALL(cuModuleGetFunction, SUCCESS, (&made_function, module, "work_ns"))                                        \
	CALL(cuModuleGetGlobal_v2, SUCCESS, (&made_address, &made_bytes, module, "counter"))                           \
	CALL(cuLibraryLoadData, SUCCESS, (&made_library, ptx, NULL, NULL, 0, NULL, NULL, 0))                           \
	CALL(cuLibraryLoadFromFile, ERROR_FILE_NOT_FOUND,                                                              \
	     (&made_library, "/nowhere/library.ptx", NULL, NULL, 0, NULL, NULL, 0))                                    \
	CALL(cuLibraryUnload, SUCCESS, (spare_library))                                                                \
	CALL(cuLibraryGetKernel, SUCCESS, (&made_kernel, library, "work_ns"))                                          \
	CALL(cuLibraryGetModule, SUCCESS, (&made_module, library))                                                     \
	CALL(cuLibraryGetGlobal, SUCCESS, (&made_address, &made_bytes, library, "counter"))                            \
	CALL(cuLibraryGetManaged, ERROR_NOT_FOUND, (&made_address, &made_bytes, library, "counter"))                   \
	CALL(cuKernelGetFunction, SUCCESS, (&made_function, kernel))                                                   \
	CALL(cuFuncLoad, SUCCESS, (function))                                                                          \
	CALL(cuKernelGetAttribute, SUCCESS, (&answer, LL_CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0))                       \
	CALL(cuKernelSetAttribute, SUCCESS, (LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, BYTES, kernel, 0))    \
	CALL(cuKernelSetCacheConfig, SUCCESS, (kernel, LL_CU_FUNC_CACHE_PREFER_NONE, 0))                               \
	CALL(cuFuncGetAttribute, SUCCESS, (&answer, LL_CU_FUNC_ATTRIBUTE_NUM_REGS, function))                          \
	CALL(cuFuncSetAttribute, SUCCESS, (function, LL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, BYTES))       \
	CALL(cuFuncSetCacheConfig, SUCCESS, (function, LL_CU_FUNC_CACHE_PREFER_NONE))                                  \
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, SUCCESS, (&answer, function, 32, 0))                         \
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, SUCCESS, (&answer, function, 32, 0, 0))             \
	CALL(cuOccupancyMaxPotentialBlockSize, SUCCESS, (&answer, &second_answer, function, NULL, 0, 0))               \
	CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, SUCCESS, (&answer, &second_answer, function, NULL, 0, 0, 0))   \
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, SUCCESS, (&made_bytes, function, 1, 32))                         \
	CALL(cuGraphAddKernelNode, SUCCESS, (&made_node, kernel_graph, NULL, 0, &old_params))                          \
	CALL(cuGraphAddKernelNode_v2, SUCCESS, (&made_node, kernel_graph, NULL, 0, &params))                           \
	CALL(cuGraphKernelNodeSetParams, SUCCESS, (kernel_node, &old_params))                                          \
	CALL(cuGraphKernelNodeSetParams_v2, SUCCESS, (kernel_node, &params))                                           \
	CALL(cuGraphExecKernelNodeSetParams, SUCCESS, (kernel_exec, kernel_node, &old_params))                         \
	CALL(cuGraphExecKernelNodeSetParams_v2, SUCCESS, (kernel_exec, kernel_node, &params))

#define BOTH(symbol, suffix, status, args) CALL(symbol, status, args) CALL(symbol##suffix, status, args)

#define CALL(symbol, status, args)                                                                                     \
	static ll_cu_result call_##symbol(void)                                                                        \
	{                                                                                                              \
		return symbol args;                                                                                    \
	}
CALLS
#undef CALL

static const struct call {
	const char *symbol;
	ll_cu_result (*call)(void);
	ll_cu_result expected;
} calls[] = {
#define CALL(symbol, status, args) {#symbol, call_##symbol, LL_CUDA_##status},
    CALLS
#undef CALL
};
enum { COUNT = sizeof calls / sizeof calls[0] };

/* ---- each call in a thread of its own ---- */

static struct caller {
	const struct call *call;
	pthread_t thread;
	_Atomic int id; /* gettid's, once it is about to call */
	_Atomic bool is_back;
	ll_cu_result status;
	bool was_seen; /* inside the call */
} callers[LL_DRIVER_CALLS_NAMED];

static void *call_from_thread(void *user)
{
	struct caller *caller = user;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	caller->id = (int)syscall(SYS_gettid);
	caller->status = caller->call->call();
	caller->is_back = true;
	return user;
}

/* Notes who is seen; false: all are back. */
static bool look(unsigned count)
{
	struct ll_driver_calls_inside inside;
	bool is_any_out = false;
	for (unsigned i = 0; i < count; i++)
		is_any_out |= !callers[i].is_back;
	CHECK_EQUAL(ll_driver_calls_wait(0, &inside), 0);
	CHECK(inside.count <= count);
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < inside.count; k++)
			callers[i].was_seen |= inside.named[k].thread == callers[i].id &&
					       strcmp(inside.named[k].function, callers[i].call->symbol) == 0;
	}
	return is_any_out;
}

static void start(const struct call *call, struct caller *caller)
{
	*caller = (struct caller){.call = call};
	CHECK_EQUAL(pthread_create(&caller->thread, NULL, call_from_thread, caller), 0);
}

/* The driver is slow, so that whoever looks meanwhile cannot miss it. */
static void check_batch(const struct call *first, unsigned count)
{
	CHECK_EQUAL(ll_driver_calls_shut(), 0);
	for (unsigned i = 0; i < count; i++)
		start(&first[i], &callers[i]);
	for (unsigned i = 0; i < count; i++)
		WAIT_FOR(callers[i].id);
	CHECK_EQUAL(simctl("hang 'cu*' 150ms"), 0); /* takes a while: a thread that is not held would be back */
	for (unsigned i = 0; i < count; i++) {
		if (callers[i].is_back)
			give_up(__FILE__, __LINE__, callers[i].call->symbol);
	}
	look(count);
	for (unsigned i = 0; i < count; i++)
		CHECK(!callers[i].was_seen);
	ll_driver_calls_open();
	while (look(count))
		sleep_ms(1);
	for (unsigned i = 0; i < count; i++) {
		CHECK_EQUAL(pthread_join(callers[i].thread, NULL), 0);
		if (!callers[i].was_seen || callers[i].status != callers[i].call->expected)
			give_up_numbers(__FILE__, __LINE__, callers[i].call->symbol, callers[i].status,
					callers[i].call->expected);
	}
	CHECK_EQUAL(simctl("heal"), 0);
}

TEST_IN_WORLD(NULL, every_call_that_passes_is_held_or_seen)
{
	prepare();
	for (unsigned i = 0; i < COUNT; i += LL_DRIVER_CALLS_NAMED)
		check_batch(&calls[i], COUNT - i < LL_DRIVER_CALLS_NAMED ? COUNT - i : LL_DRIVER_CALLS_NAMED);
}

/* ---- the rows ---- */

#define ROW_NONE(row)
#define ROW_CALL(row)
#define ROW_BODY(row)
#define ROW_BODY_NO_CARD(row)
#define ROW_WORK(...) ROW_NONE
#define ROW_COPY(...) ROW_NONE
#define ROW_WAITED(row)
#define ROW_PASS(row) row
#define ROW_GAP(stream) ROW_PASS
#define ROW_WAIT(stream) ROW_PASS
#define ROW_HOST_COPY(stream, kind, bytes) COPIED_##kind
#define COPIED_PASS ROW_PASS
#define COPIED_GAP ROW_PASS
#define COPIED_WAITED ROW_WAITED
#define ROW_ADDRESS(row) row
#define ROW_LOAD(row) row
#define ROW_CODE(row) row
#define ROWS_none(row, symbol, args) row(symbol, args)
#define ROWS_ptsz(row, symbol, args) row(symbol, args) row(symbol##_ptsz, args)
#define ROWS_ptds(row, symbol, args) row(symbol, args) row(symbol##_ptds, args)

#define TEXT(args) #args
static const struct {
	const char *symbol, *args;
	void (*hook)(void);
} rows[] = {
#define LISTED(symbol, args) {#symbol, TEXT(args), (void (*)(void))symbol},
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args)                                         \
	ROW_##hook(ROWS_##suffix(LISTED, symbol, args))
#include "abi/cuda.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

TEST(every_row_is_called_here)
{
	for (size_t i = 0; i < ROWS; i++) {
		size_t k = 0;
		while (k < COUNT && strcmp(calls[k].symbol, rows[i].symbol) != 0)
			k++;
		if (k == COUNT)
			fail_msg("%s is not called", rows[i].symbol);
	}
}

typedef ll_cu_result any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
enum { MOST_ARGUMENTS = 8 };

static uint64_t given[MOST_ARGUMENTS];

static ll_cu_result take_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
				   uint64_t h)
{
	const uint64_t arguments[MOST_ARGUMENTS] = {a, b, c, d, e, f, g, h};
	memcpy(given, arguments, sizeof given);
	return LL_CUDA_ERROR_NOT_READY;
}

static const struct ll_real taking_driver = {
#define TAKING(symbol, args) .symbol = (__typeof__(&symbol))(void (*)(void))take_arguments,
#define LL_CUDA(name, symbol, need, since, suffix, traced, hook, params, args)                                         \
	ROW_##hook(ROWS_##suffix(TAKING, symbol, args))
#include "abi/cuda.def"
};

static unsigned count_arguments(const char *args)
{
	unsigned count = strcmp(args, "()") != 0;
	for (; *args; args++)
		count += *args == ',';
	return count;
}

TEST_IN_WORLD(NULL, the_driver_gets_the_arguments_in_their_order)
{
	atomic_store(&ll_real_bound[LL_REAL_CUDA], (const void *)&taking_driver);
	for (size_t i = 0; i < ROWS; i++) {
		unsigned count = count_arguments(rows[i].args);
		/* Handles of 64 bytes go by memory: tests/shim/memory_shared.c has them. */
		if (strncmp(rows[i].symbol, "cuIpcOpen", strlen("cuIpcOpen")) == 0)
			continue;
		CHECK(count <= MOST_ARGUMENTS);
		memset(given, 0, sizeof given);
		CHECK_EQUAL(((any_function *)rows[i].hook)(1, 2, 3, 4, 5, 6, 7, 8), LL_CUDA_ERROR_NOT_READY);
		for (unsigned k = 0; k < count; k++) {
			if ((uint32_t)given[k] != k + 1)
				give_up_numbers(__FILE__, __LINE__, rows[i].symbol, k, (long long)given[k]);
		}
	}
}
