/* Every entry that makes the card work waits at the gate and is timed; every other one does not wait. */
#include "launching.h"

#include <dlfcn.h>

#include "abi/cuda_prototypes.h"

#define ID 7
#define MS UINT64_C(1000000)
/* A call that waits does so for 50 ms at a cap of 10 %; one that does not wait comes back in the next 10 000 s. */
#define SHORT_DEBT (5 * MS)
#define WAIT_NS (30000 * MS) /* less than a wait for it lasts */
enum { BYTES = 64 * 1024, PITCH = 1024, ROWS = 16 };

static struct ll_cu_stream *stream;
static struct ll_cu_function *work;
static struct ll_cu_graph_exec *exec;
static struct ll_cu_context *context;
static ll_cu_deviceptr near_, far_;
static struct ll_cu_array *array, *other_array;
static void *pinned;
static uint64_t length_ns = MS / 10;
static void *params[] = {&length_ns};

/* The variants for per-thread default streams. */
static struct {
#define LL_CUDA_PER_THREAD(symbol, suffix, params, args) __typeof__(&symbol##suffix) symbol##suffix;
#include "abi/cuda_per_thread.def"
} own;

static void open_own(void)
{
	void *found;
#define LL_CUDA_PER_THREAD(symbol, suffix, params, args)                                                               \
	found = dlsym(cu.library, #symbol #suffix);                                                                    \
	memcpy(&own.symbol##suffix, &found, sizeof found);
#include "abi/cuda_per_thread.def"
}

static const struct ll_cu_launch_config *config(void)
{
	static struct ll_cu_launch_config at;
	at = (struct ll_cu_launch_config){1, 1, 1, 32, 1, 1, 0, stream, NULL, 0};
	return &at;
}

static struct ll_cu_launch_params *parts(void)
{
	static struct ll_cu_launch_params at;
	at = (struct ll_cu_launch_params){work, 1, 1, 1, 32, 1, 1, 0, stream, params};
	return &at;
}

static struct ll_cu_memcpy2d *copy2d(enum ll_cu_memory_type from, enum ll_cu_memory_type to)
{
	static struct ll_cu_memcpy2d at;
	at = (struct ll_cu_memcpy2d){.from_type = from,
				     .from_host = pinned,
				     .from_device = far_,
				     .from_pitch_bytes = PITCH,
				     .to_type = to,
				     .to_host = pinned,
				     .to_device = near_,
				     .to_pitch_bytes = PITCH,
				     .width_bytes = PITCH,
				     .height = ROWS};
	return &at;
}

static struct ll_cu_memcpy3d *copy3d(void)
{
	static struct ll_cu_memcpy3d at;
	at = (struct ll_cu_memcpy3d){.from_type = LL_CU_MEMORYTYPE_DEVICE,
				     .from_device = far_,
				     .from_pitch_bytes = PITCH,
				     .from_height = ROWS,
				     .to_type = LL_CU_MEMORYTYPE_DEVICE,
				     .to_device = near_,
				     .to_pitch_bytes = PITCH,
				     .to_height = ROWS,
				     .width_bytes = PITCH,
				     .height = ROWS,
				     .depth = 1};
	return &at;
}

static struct ll_cu_memcpy3d_peer *copy_peer(void)
{
	static struct ll_cu_memcpy3d_peer at;
	at = (struct ll_cu_memcpy3d_peer){.from_type = LL_CU_MEMORYTYPE_DEVICE,
					  .from_device = far_,
					  .from_pitch_bytes = PITCH,
					  .from_height = ROWS,
					  .from_context = context,
					  .to_type = LL_CU_MEMORYTYPE_DEVICE,
					  .to_device = near_,
					  .to_pitch_bytes = PITCH,
					  .to_height = ROWS,
					  .to_context = context,
					  .width_bytes = PITCH,
					  .height = ROWS,
					  .depth = 1};
	return &at;
}

/* A batch of a copy from the host and one that is told by `from`. */
static struct {
	ll_cu_deviceptr to[2], from[2];
	size_t bytes[2], first_of[1];
	struct ll_cu_copy_attributes attributes[1];
} lines;

static void fill_lines(ll_cu_deviceptr from)
{
	lines.to[0] = lines.to[1] = near_;
	lines.from[0] = (uintptr_t)pinned;
	lines.from[1] = from;
	lines.bytes[0] = lines.bytes[1] = BYTES / 2;
	lines.first_of[0] = 0;
	lines.attributes[0] = (struct ll_cu_copy_attributes){.order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
}

static ll_cu_result batch(ll_cu_deviceptr from, struct ll_cu_stream *in)
{
	fill_lines(from);
	return cu.cuMemcpyBatchAsync(lines.to, lines.from, lines.bytes, 2, lines.attributes, lines.first_of, 1, in);
}

static ll_cu_result old_batch(ll_cu_deviceptr from, struct ll_cu_stream *in)
{
	size_t failed;
	fill_lines(from);
	return cu.cuMemcpyBatchAsync_v1(lines.to, lines.from, lines.bytes, 2, lines.attributes, lines.first_of, 1,
					&failed, in);
}

static ll_cu_result own_batch(bool is_old)
{
	size_t failed;
	fill_lines(far_);
	return is_old ? own.cuMemcpyBatchAsync_ptsz(lines.to, lines.from, lines.bytes, 2, lines.attributes,
						    lines.first_of, 1, &failed, NULL)
		      : own.cuMemcpyBatchAsync_v2_ptsz(lines.to, lines.from, lines.bytes, 2, lines.attributes,
						       lines.first_of, 1, NULL);
}

static ll_cu_result line(ll_cu_deviceptr from, struct ll_cu_stream *in)
{
	fill_lines(from);
	return cu.cuMemcpyWithAttributesAsync(near_, from, BYTES / 2, lines.attributes, in);
}

static ll_cu_result own_line(ll_cu_deviceptr from)
{
	fill_lines(from);
	return own.cuMemcpyWithAttributesAsync_ptsz(near_, from, BYTES / 2, lines.attributes, NULL);
}

/* A batch of one block, from an array or from that address. */
static struct ll_cu_copy3d_op *blocks(ll_cu_deviceptr from)
{
	static struct ll_cu_copy3d_op at;
	at = (struct ll_cu_copy3d_op){
	    .from = {.type = LL_CU_MEMCPY_OPERAND_TYPE_ARRAY, .at.array.array = array},
	    .to = {.type = LL_CU_MEMCPY_OPERAND_TYPE_POINTER, .at.pointer.address = near_},
	    .extent = {PITCH, ROWS, 1},
	    .order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
	};
	if (from)
		at.from =
		    (struct ll_cu_copy_operand){.type = LL_CU_MEMCPY_OPERAND_TYPE_POINTER, .at.pointer.address = from};
	return &at;
}

#define DEVICE LL_CU_MEMORYTYPE_DEVICE
#define HOST LL_CU_MEMORYTYPE_HOST
#define UNIFIED LL_CU_MEMORYTYPE_UNIFIED

/* ENTRY(name, call) */
#define GATED                                                                                                          \
	ENTRY(cuLaunchKernel, cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL))                     \
	ENTRY(cuLaunchKernel_ptsz, own.cuLaunchKernel_ptsz(work, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL))            \
	ENTRY(cuLaunchKernel_in_the_legacy_stream,                                                                     \
	      cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, LL_CU_STREAM_LEGACY, params, NULL))                        \
	ENTRY(cuLaunchKernelEx, cu.cuLaunchKernelEx(config(), work, params, NULL))                                     \
	ENTRY(cuLaunchKernelEx_ptsz, own.cuLaunchKernelEx_ptsz(config(), work, params, NULL))                          \
	ENTRY(cuLaunchCooperativeKernel, cu.cuLaunchCooperativeKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params))     \
	ENTRY(cuLaunchCooperativeKernelMultiDevice, cu.cuLaunchCooperativeKernelMultiDevice(parts(), 1, 0))            \
	ENTRY(cuLaunch, cu.cuLaunch(work))                                                                             \
	ENTRY(cuLaunchGrid, cu.cuLaunchGrid(work, 1, 1))                                                               \
	ENTRY(cuLaunchGridAsync, cu.cuLaunchGridAsync(work, 1, 1, stream))                                             \
	ENTRY(cuGraphLaunch, cu.cuGraphLaunch(exec, stream))                                                           \
	ENTRY(cuGraphLaunch_ptsz, own.cuGraphLaunch_ptsz(exec, NULL))                                                  \
	ENTRY(cuMemsetD8, cu.cuMemsetD8(near_, 1, BYTES))                                                              \
	ENTRY(cuMemsetD8_v2_ptds, own.cuMemsetD8_v2_ptds(near_, 1, BYTES))                                             \
	ENTRY(cuMemsetD16, cu.cuMemsetD16(near_, 1, BYTES / 2))                                                        \
	ENTRY(cuMemsetD32, cu.cuMemsetD32(near_, 1, BYTES / 4))                                                        \
	ENTRY(cuMemsetD8Async, cu.cuMemsetD8Async(near_, 1, BYTES, stream))                                            \
	ENTRY(cuMemsetD16Async, cu.cuMemsetD16Async(near_, 1, BYTES / 2, stream))                                      \
	ENTRY(cuMemsetD32Async, cu.cuMemsetD32Async(near_, 1, BYTES / 4, stream))                                      \
	ENTRY(cuMemsetD32Async_ptsz, own.cuMemsetD32Async_ptsz(near_, 1, BYTES / 4, stream))                           \
	ENTRY(cuMemsetD2D8, cu.cuMemsetD2D8(near_, PITCH, 1, PITCH, ROWS))                                             \
	ENTRY(cuMemsetD2D16, cu.cuMemsetD2D16(near_, PITCH, 1, PITCH / 2, ROWS))                                       \
	ENTRY(cuMemsetD2D32, cu.cuMemsetD2D32(near_, PITCH, 1, PITCH / 4, ROWS))                                       \
	ENTRY(cuMemsetD2D8Async, cu.cuMemsetD2D8Async(near_, PITCH, 1, PITCH, ROWS, stream))                           \
	ENTRY(cuMemsetD2D16Async, cu.cuMemsetD2D16Async(near_, PITCH, 1, PITCH / 2, ROWS, stream))                     \
	ENTRY(cuMemsetD2D32Async, cu.cuMemsetD2D32Async(near_, PITCH, 1, PITCH / 4, ROWS, stream))                     \
	ENTRY(cuMemcpyDtoD, cu.cuMemcpyDtoD(near_, far_, BYTES))                                                       \
	ENTRY(cuMemcpyDtoD_v2_ptds, own.cuMemcpyDtoD_v2_ptds(near_, far_, BYTES))                                      \
	ENTRY(cuMemcpyDtoDAsync, cu.cuMemcpyDtoDAsync(near_, far_, BYTES, stream))                                     \
	ENTRY(cuMemcpy, cu.cuMemcpy(near_, far_, BYTES))                                                               \
	ENTRY(cuMemcpyAsync, cu.cuMemcpyAsync(near_, far_, BYTES, stream))                                             \
	ENTRY(cuMemcpyAsync_ptsz, own.cuMemcpyAsync_ptsz(near_, far_, BYTES, NULL))                                    \
	ENTRY(cuMemcpy2D, cu.cuMemcpy2D(copy2d(DEVICE, DEVICE)))                                                       \
	ENTRY(cuMemcpy2DUnaligned, cu.cuMemcpy2DUnaligned(copy2d(DEVICE, DEVICE)))                                     \
	ENTRY(cuMemcpy2DAsync, cu.cuMemcpy2DAsync(copy2d(UNIFIED, DEVICE), stream))                                    \
	ENTRY(cuMemcpy3D, cu.cuMemcpy3D(copy3d()))                                                                     \
	ENTRY(cuMemcpy3DAsync, cu.cuMemcpy3DAsync(copy3d(), stream))                                                   \
	ENTRY(cuMemcpyAtoA, cu.cuMemcpyAtoA(array, 0, other_array, 0, PITCH))                                          \
	ENTRY(cuMemcpyAtoA_v2_ptds, own.cuMemcpyAtoA_v2_ptds(array, 0, other_array, 0, PITCH))                         \
	ENTRY(cuMemcpyAtoD, cu.cuMemcpyAtoD(near_, array, 0, PITCH))                                                   \
	ENTRY(cuMemcpyAtoD_v2_ptds, own.cuMemcpyAtoD_v2_ptds(near_, array, 0, PITCH))                                  \
	ENTRY(cuMemcpyDtoA, cu.cuMemcpyDtoA(array, 0, near_, PITCH))                                                   \
	ENTRY(cuMemcpyDtoA_v2_ptds, own.cuMemcpyDtoA_v2_ptds(array, 0, near_, PITCH))                                  \
	ENTRY(cuMemcpyBatchAsync, batch(far_, stream))                                                                 \
	ENTRY(cuMemcpyBatchAsync_v1, old_batch(far_, stream))                                                          \
	ENTRY(cuMemcpyBatchAsync_v2_ptsz, own_batch(false))                                                            \
	ENTRY(cuMemcpyBatchAsync_ptsz, own_batch(true))                                                                \
	ENTRY(cuMemcpy3DBatchAsync, cu.cuMemcpy3DBatchAsync(1, blocks(0), 0, stream))                                  \
	ENTRY(cuMemcpy3DBatchAsync_v1, cu.cuMemcpy3DBatchAsync_v1(1, blocks(far_), NULL, 0, stream))                   \
	ENTRY(cuMemcpy3DBatchAsync_v2_ptsz, own.cuMemcpy3DBatchAsync_v2_ptsz(1, blocks(far_), 0, NULL))                \
	ENTRY(cuMemcpy3DBatchAsync_ptsz, own.cuMemcpy3DBatchAsync_ptsz(1, blocks(0), NULL, 0, NULL))                   \
	ENTRY(cuMemcpyWithAttributesAsync, line(far_, stream))                                                         \
	ENTRY(cuMemcpyWithAttributesAsync_ptsz, own_line(far_))                                                        \
	ENTRY(cuMemcpy3DWithAttributesAsync, cu.cuMemcpy3DWithAttributesAsync(blocks(0), 0, stream))                   \
	ENTRY(cuMemcpy3DWithAttributesAsync_ptsz, own.cuMemcpy3DWithAttributesAsync_ptsz(blocks(far_), 0, NULL))       \
	ENTRY(cuMemcpyPeer, cu.cuMemcpyPeer(near_, context, far_, context, BYTES))                                     \
	ENTRY(cuMemcpyPeerAsync, cu.cuMemcpyPeerAsync(near_, context, far_, context, BYTES, stream))                   \
	ENTRY(cuMemcpy3DPeer, cu.cuMemcpy3DPeer(copy_peer()))                                                          \
	ENTRY(cuMemcpy3DPeerAsync, cu.cuMemcpy3DPeerAsync(copy_peer(), stream))                                        \
	ENTRY(cuLaunchCooperativeKernel_ptsz,                                                                          \
	      own.cuLaunchCooperativeKernel_ptsz(work, 1, 1, 1, 32, 1, 1, 0, NULL, params))                            \
	ENTRY(cuMemsetD16_v2_ptds, own.cuMemsetD16_v2_ptds(near_, 1, BYTES / 2))                                       \
	ENTRY(cuMemsetD32_v2_ptds, own.cuMemsetD32_v2_ptds(near_, 1, BYTES / 4))                                       \
	ENTRY(cuMemsetD8Async_ptsz, own.cuMemsetD8Async_ptsz(near_, 1, BYTES, NULL))                                   \
	ENTRY(cuMemsetD16Async_ptsz, own.cuMemsetD16Async_ptsz(near_, 1, BYTES / 2, NULL))                             \
	ENTRY(cuMemsetD2D8_v2_ptds, own.cuMemsetD2D8_v2_ptds(near_, PITCH, 1, PITCH, ROWS))                            \
	ENTRY(cuMemsetD2D16_v2_ptds, own.cuMemsetD2D16_v2_ptds(near_, PITCH, 1, PITCH / 2, ROWS))                      \
	ENTRY(cuMemsetD2D32_v2_ptds, own.cuMemsetD2D32_v2_ptds(near_, PITCH, 1, PITCH / 4, ROWS))                      \
	ENTRY(cuMemsetD2D8Async_ptsz, own.cuMemsetD2D8Async_ptsz(near_, PITCH, 1, PITCH, ROWS, NULL))                  \
	ENTRY(cuMemsetD2D16Async_ptsz, own.cuMemsetD2D16Async_ptsz(near_, PITCH, 1, PITCH / 2, ROWS, NULL))            \
	ENTRY(cuMemsetD2D32Async_ptsz, own.cuMemsetD2D32Async_ptsz(near_, PITCH, 1, PITCH / 4, ROWS, NULL))            \
	ENTRY(cuMemcpyDtoDAsync_v2_ptsz, own.cuMemcpyDtoDAsync_v2_ptsz(near_, far_, BYTES, NULL))                      \
	ENTRY(cuMemcpy_ptds, own.cuMemcpy_ptds(near_, far_, BYTES))                                                    \
	ENTRY(cuMemcpy2D_v2_ptds, own.cuMemcpy2D_v2_ptds(copy2d(DEVICE, DEVICE)))                                      \
	ENTRY(cuMemcpy2DUnaligned_v2_ptds, own.cuMemcpy2DUnaligned_v2_ptds(copy2d(DEVICE, DEVICE)))                    \
	ENTRY(cuMemcpy2DAsync_v2_ptsz, own.cuMemcpy2DAsync_v2_ptsz(copy2d(UNIFIED, DEVICE), NULL))                     \
	ENTRY(cuMemcpy3D_v2_ptds, own.cuMemcpy3D_v2_ptds(copy3d()))                                                    \
	ENTRY(cuMemcpy3DAsync_v2_ptsz, own.cuMemcpy3DAsync_v2_ptsz(copy3d(), NULL))                                    \
	ENTRY(cuMemcpyPeer_ptds, own.cuMemcpyPeer_ptds(near_, context, far_, context, BYTES))                          \
	ENTRY(cuMemcpyPeerAsync_ptsz, own.cuMemcpyPeerAsync_ptsz(near_, context, far_, context, BYTES, NULL))          \
	ENTRY(cuMemcpy3DPeer_ptds, own.cuMemcpy3DPeer_ptds(copy_peer()))                                               \
	ENTRY(cuMemcpy3DPeerAsync_ptsz, own.cuMemcpy3DPeerAsync_ptsz(copy_peer(), NULL))

#define PASSING                                                                                                        \
	ENTRY(cuMemcpyHtoD, cu.cuMemcpyHtoD(near_, pinned, BYTES))                                                     \
	ENTRY(cuMemcpyDtoHAsync, cu.cuMemcpyDtoHAsync(pinned, near_, BYTES, stream))                                   \
	ENTRY(cuMemcpy from the host, cu.cuMemcpy(near_, (ll_cu_deviceptr)(uintptr_t)pinned, BYTES))                   \
	ENTRY(cuMemcpyAsync to the host, cu.cuMemcpyAsync((ll_cu_deviceptr)(uintptr_t)pinned, near_, BYTES, stream))   \
	ENTRY(cuMemcpy2D from the host, cu.cuMemcpy2D(copy2d(HOST, DEVICE)))                                           \
	ENTRY(cuMemcpy2DAsync to the host, cu.cuMemcpy2DAsync(copy2d(DEVICE, HOST), stream))                           \
	ENTRY(cuMemcpyHtoA, cu.cuMemcpyHtoA(array, 0, pinned, PITCH))                                                  \
	ENTRY(cuMemcpyHtoAAsync, cu.cuMemcpyHtoAAsync(array, 0, pinned, PITCH, stream))                                \
	ENTRY(cuMemcpyAtoH, cu.cuMemcpyAtoH(pinned, array, 0, PITCH))                                                  \
	ENTRY(cuMemcpyAtoHAsync, cu.cuMemcpyAtoHAsync(pinned, array, 0, PITCH, stream))                                \
	ENTRY(cuMemcpyBatchAsync from the host, batch((ll_cu_deviceptr)(uintptr_t)pinned, stream))                     \
	ENTRY(cuMemcpyBatchAsync_v1 from the host, old_batch((ll_cu_deviceptr)(uintptr_t)pinned, stream))              \
	ENTRY(cuMemcpy3DBatchAsync from the host,                                                                      \
	      cu.cuMemcpy3DBatchAsync(1, blocks((ll_cu_deviceptr)(uintptr_t)pinned), 0, stream))                       \
	ENTRY(cuMemcpyWithAttributesAsync from the host, line((ll_cu_deviceptr)(uintptr_t)pinned, stream))             \
	ENTRY(cuMemcpy3DWithAttributesAsync from the host,                                                             \
	      cu.cuMemcpy3DWithAttributesAsync(blocks((ll_cu_deviceptr)(uintptr_t)pinned), 0, stream))                 \
	ENTRY(cuLaunchHostFunc, cu.cuLaunchHostFunc(stream, do_nothing, NULL))                                         \
	ENTRY(cuStreamSynchronize, cu.cuStreamSynchronize(stream))                                                     \
	ENTRY(cuGraphUpload, cu.cuGraphUpload(exec, stream))                                                           \
	ENTRY(a launch that is captured, captured_launch())

static void do_nothing(void *user)
{
	(void)user;
}

/* One that the driver takes and one that it refuses. */
static ll_cu_result captured_launch(void)
{
	struct ll_cu_graph *graph = NULL;
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
	CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
	CHECK(cu.cuLaunchKernel(work, 0, 1, 1, 32, 1, 1, 0, stream, params, NULL) != 0);
	cu.cuStreamEndCapture(stream, &graph);
	if (graph)
		CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
	return 0;
}

static void make_graph(void)
{
	struct ll_cu_graph *graph;
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	for (int i = 0; i < 3; i++)
		launch_timed(work, stream, length_ns, 1, 32);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
}

static void prepare_under(bool is_strict)
{
	govern_by(
	    (struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = 100, .is_strict = is_strict});
	context = open_context(0);
	stream = new_stream();
	work = get_kernel("work_ns");
	open_own();
	make_graph();
	CHECK_EQUAL(cu.cuFuncSetBlockShape(work, 32, 1, 1), 0);
	CHECK_EQUAL(cu.cuParamSetv(work, 0, &length_ns, sizeof length_ns), 0);
	CHECK_EQUAL(cu.cuParamSetSize(work, sizeof length_ns), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&near_, BYTES), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&far_, BYTES), 0);
	CHECK_EQUAL(cu.cuMemHostAlloc(&pinned, BYTES, 0), 0);
	struct ll_cu_array_descriptor shape = {PITCH, ROWS, LL_CU_AD_FORMAT_UNSIGNED_INT8, 1};
	CHECK_EQUAL(cu.cuArrayCreate(&array, &shape), 0);
	CHECK_EQUAL(cu.cuArrayCreate(&other_array, &shape), 0);
	launch_work(stream, MS); /* the account begins */
}

static void prepare(void)
{
	prepare_under(false);
}

/* The debt was paid before it came back; what it costs itself may have been charged by now. */
static void check_gated(const char *name, ll_cu_result status, uint64_t before_ns)
{
	int64_t left_ns = tokens_ns(ID);
	int64_t cost_ns = (int64_t)(gpu_ns(ID) - before_ns);
	if (status)
		give_up_numbers(__FILE__, __LINE__, name, status, 0);
	if (left_ns + cost_ns < -(int64_t)(SHORT_DEBT / 2))
		give_up_numbers(__FILE__, __LINE__, name, left_ns, cost_ns);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(gpu_ns(ID) > before_ns);
}

#define ENTRY(name, call)                                                                                              \
	static ll_cu_result run_##name(void)                                                                           \
	{                                                                                                              \
		return call;                                                                                           \
	}
GATED
#undef ENTRY

static const struct {
	const char *name;
	ll_cu_result (*run)(void);
} gated[] = {
#define ENTRY(name, call) {#name, run_##name},
    GATED
#undef ENTRY
};
enum { GATED_COUNT = sizeof gated / sizeof gated[0] };

TEST_IN_WORLD(NULL, every_entry_that_makes_the_card_work_waits_and_is_timed)
{
	prepare();
	for (size_t i = 0; i < GATED_COUNT; i++) {
		owe(ID, SHORT_DEBT);
		uint64_t before_ns = gpu_ns(ID);
		check_gated(gated[i].name, gated[i].run(), before_ns);
	}
}

TEST_IN_WORLD(NULL, what_is_no_work_of_the_card_does_not_wait)
{
	prepare();
#define ENTRY(name, call)                                                                                              \
	do {                                                                                                           \
		owe_for_long(ID);                                                                                      \
		uint64_t start_ns = ll_now_ns();                                                                       \
		ll_cu_result status = call;                                                                            \
		bool has_waited = ll_now_ns() - start_ns > WAIT_NS;                                                    \
		if (status || has_waited || tokens_ns(ID) > 0)                                                         \
			give_up_numbers(__FILE__, __LINE__, #name, status, tokens_ns(ID));                             \
	} while (0);
	PASSING
#undef ENTRY
}

/* Strict: work that nobody can hold to the limits is refused, by every entry. */
TEST_IN_WORLD(NULL, a_strict_program_that_lost_its_claim_is_refused_by_every_entry)
{
	prepare_under(true);
	jobs_end();
	WAIT_FOR(cu.cuMemsetD8Async(near_, 0, BYTES, stream) == LL_CUDA_ERROR_NOT_PERMITTED);
	for (size_t i = 0; i < GATED_COUNT; i++) {
		ll_cu_result status = gated[i].run();
		if (status != LL_CUDA_ERROR_NOT_PERMITTED)
			give_up_numbers(__FILE__, __LINE__, gated[i].name, status, LL_CUDA_ERROR_NOT_PERMITTED);
	}
	CHECK_EQUAL(cu.cuMemcpyHtoD(near_, pinned, BYTES), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

static void begin_capture(int round)
{
	struct ll_cu_graph *graph;
	ll_cu_result status;
	if (round % 4 == 3) {
		CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
		status = cu.cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, LL_CU_STREAM_CAPTURE_MODE_GLOBAL);
	} else if (round % 4 == 2) {
		status = cu.cuStreamBeginCapture_v1(stream);
	} else {
		status = cu.cuStreamBeginCapture(stream, round % 4 ? LL_CU_STREAM_CAPTURE_MODE_GLOBAL
								   : LL_CU_STREAM_CAPTURE_MODE_RELAXED);
	}
	CHECK_EQUAL(status, 0);
}

/* Timing events before and after it must not get into the graph, nor spoil the capture. */
TEST_IN_WORLD(NULL, a_capture_is_left_alone)
{
	prepare();
	for (int i = 0; i < 100; i++) {
		struct ll_cu_graph *graph = NULL;
		size_t nodes = 0;
		launch_timed(work, stream, MS / 100, 1, 32); /* leaves the agent something to time */
		if (i == 0)
			owe_for_long(ID);
		begin_capture(i);
		launch_timed(work, stream, MS, 1, 32);
		CHECK_EQUAL(cu.cuLaunchKernelEx(config(), work, params, NULL), 0);
		CHECK_EQUAL(cu.cuMemsetD8Async(near_, 1, BYTES, stream), 0);
		CHECK_EQUAL(cu.cuMemcpyDtoDAsync(near_, far_, BYTES, stream), 0);
		if (i == 0)
			CHECK(tokens_ns(ID) < 0);
		CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
		CHECK_EQUAL(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
		CHECK_EQUAL(nodes, 4);
		CHECK_EQUAL(cu.cuGraphDestroy(graph), 0);
		if (i == 0) /* the next one waits no more */
			set_cap(ID, 0);
	}
}

/* What was launched is what is charged, whatever the way; 1 ms each. */
TEST_IN_WORLD(NULL, what_is_launched_is_charged_once)
{
	enum { COUNT = 200 };
	prepare();
	length_ns = MS;
	set_cap(ID, 0);
	owe(ID, 0);
	uint64_t before_ns = gpu_ns(ID), began_ns = ll_now_ns();
	for (int i = 0; i < COUNT; i++)
		CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	uint64_t took_ns = ll_now_ns() - began_ns;
	WAIT_FOR(gpu_ns(ID) - before_ns >= COUNT * MS * 98 / 100);
	CHECK(gpu_ns(ID) - before_ns <= took_ns);
	/* One by one, with pauses that are nobody's. */
	before_ns = gpu_ns(ID);
	for (int i = 0; i < 20; i++) {
		CHECK_EQUAL(cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		sleep_ms(5);
	}
	WAIT_FOR(gpu_ns(ID) - before_ns >= 19 * MS);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK(gpu_ns(ID) - before_ns <= 40 * MS);
}

/* The card and the context are the stream's: another one is current. */
TEST_IN_WORLD(NULL, a_stream_of_another_context_is_gated_and_timed)
{
	struct ll_cu_context *second, *popped;
	prepare();
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 0), 0);
	owe(ID, SHORT_DEBT);
	uint64_t before_ns = gpu_ns(ID);
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK(tokens_ns(ID) > -(int64_t)(SHORT_DEBT / 2));
	struct ll_cu_context *current;
	CHECK_EQUAL(cu.cuCtxGetCurrent(&current), 0);
	CHECK(current == second);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	WAIT_FOR(gpu_ns(ID) > before_ns);
	CHECK_EQUAL(cu.cuCtxPopCurrent(&popped), 0);
	owe(ID, SHORT_DEBT);
	CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	stream = new_stream();
	launch_timed(work, stream, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamDestroy_v1(stream), 0);
	stream = new_stream();
	launch_timed(work, stream, MS, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK_EQUAL(has_note(ID), 0);
}
