/*
 * Calls of the driver that the library makes inside a hook, and that fail. The program gets the driver's own answer and
 * nothing has happened, or the call has done its work and what it took is charged.
 */
#include "movable.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* No call of the driver answers this by itself. */
#define FAULT LL_CUDA_ERROR_LAUNCH_TIMEOUT

#define SLACK_BYTES (256 * KIB) /* card_used is rounded */

static const char *const inner_functions[] = {
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetLimit",
    "cuCtxPushCurrent_v2",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamWaitEvent",
    "cuThreadExchangeStreamCaptureMode",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuDeviceGetAttribute",
    "cuDeviceGetName",
    "cuDeviceGetUuid_v2",
    "cuDeviceGetMemPool",
    "cuDeviceGetDefaultMemPool",
    "cuMemGetDefaultMemPool",
    "cuMemPoolGetAttribute",
    "cuDeviceGetGraphMemAttribute",
    "cuDevicePrimaryCtxGetState",
    "cuCtxFromGreenCtx",
    "cuMemGetInfo_v2",
};
enum { INNER_FUNCTIONS = sizeof inner_functions / sizeof *inner_functions };

/* ---- the calls ---- */

static struct ll_cu_stream *stream;
static struct ll_cu_context *made_context;
static struct ll_cu_mem_pool *pool;
static ll_cu_deviceptr address;
static ll_cu_mem_handle handle;
static struct ll_cu_array *array;
static struct ll_cu_mipmapped_array *mipmap;
static struct ll_cu_external_memory *external;
static struct ll_cu_graph *graph;
static struct ll_cu_graph_exec *exec;
static struct ll_cu_green_context *green;
static struct ll_cu_resource_desc *desc;
static size_t stack_bytes;

static ll_cu_result alloc_plain(void)
{
	return cu.cuMemAlloc(&address, 8 * MIB);
}

static ll_cu_result free_plain(void)
{
	return cu.cuMemFree(address);
}

static ll_cu_result alloc_rows(void)
{
	size_t pitch;
	return cu.cuMemAllocPitch(&address, &pitch, 4096, 2048, 4);
}

static ll_cu_result alloc_managed(void)
{
	ll_cu_result status = cu.cuMemAllocManaged(&address, 8 * MIB, LL_CU_MEM_ATTACH_GLOBAL);
	return status ? status : cu.cuMemsetD8(address, 1, 8 * MIB);
}

static ll_cu_result create_array(void)
{
	struct ll_cu_array_descriptor shape = {2048, 1024, LL_CU_AD_FORMAT_FLOAT, 1};
	return cu.cuArrayCreate(&array, &shape);
}

static ll_cu_result create_box(void)
{
	struct ll_cu_array3d_descriptor shape = {2048, 1024, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0};
	return cu.cuArray3DCreate(&array, &shape);
}

static ll_cu_result create_mipmap(void)
{
	struct ll_cu_array3d_descriptor shape = {2048, 1024, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0};
	return cu.cuMipmappedArrayCreate(&mipmap, &shape, 1);
}

static ll_cu_result import_external(void)
{
	struct ll_cu_external_memory_desc descriptor = {.type = LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
							.handle.fd = memfd_create("external", MFD_CLOEXEC),
							.bytes = 8 * MIB};
	CHECK_EQUAL(ftruncate(descriptor.handle.fd, (off_t)(8 * MIB)), 0);
	ll_cu_result status = cu.cuImportExternalMemory(&external, &descriptor);
	if (status)
		close(descriptor.handle.fd);
	return status;
}

static ll_cu_result create_physical(void)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	return cu.cuMemCreate(&handle, 8 * MIB, &prop, 0);
}

static ll_cu_result alloc_ordered(void)
{
	return cu.cuMemAllocAsync(&address, 8 * MIB, stream);
}

static ll_cu_result alloc_ordered_by_default(void)
{
	return cu.cuMemAllocAsync(&address, 8 * MIB, NULL);
}

static ll_cu_result free_ordered(void)
{
	return cu.cuMemFreeAsync(address, stream);
}

static ll_cu_result alloc_from_pool(void)
{
	return cu.cuMemAllocFromPoolAsync(&address, 40 * MIB, pool, stream);
}

static ll_cu_result destroy_array(void)
{
	return cu.cuArrayDestroy(array);
}

static ll_cu_result destroy_context(void)
{
	return cu.cuCtxDestroy(made_context);
}

static void make_graph(void)
{
	struct ll_cu_graph_node *node;
	struct ll_cu_mem_alloc_params params = {
	    .pool = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}},
	    .bytes = 10 * MIB};
	struct ll_cu_graph_node *freed;
	CHECK_EQUAL(cu.cuGraphCreate(&graph, 0), 0);
	CHECK_EQUAL(cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), 0);
	CHECK_EQUAL(cu.cuGraphAddMemFreeNode(&freed, graph, &node, 1, params.address), 0);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
}

static ll_cu_result launch_graph(void)
{
	return cu.cuGraphLaunch(exec, stream);
}

static ll_cu_result upload_graph(void)
{
	return cu.cuGraphUpload(exec, stream);
}

static ll_cu_result create_context(void)
{
	return cu.cuCtxCreate(&made_context, 0, 0);
}

static ll_cu_result retain_primary(void)
{
	return cu.cuDevicePrimaryCtxRetain(&made_context, 0);
}

static ll_cu_result release_primary(void)
{
	return cu.cuDevicePrimaryCtxRelease(0);
}

static ll_cu_result reset_primary(void)
{
	return cu.cuDevicePrimaryCtxReset(0);
}

static ll_cu_result create_green(void)
{
	return cu.cuGreenCtxCreate(&green, desc, 0, LL_CU_GREEN_CTX_DEFAULT_STREAM);
}

static ll_cu_result destroy_green(void)
{
	return cu.cuGreenCtxDestroy(green);
}

static ll_cu_result grow_stacks(void)
{
	return cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 4 * stack_bytes);
}

static void prepare_plain(void)
{
	CHECK_EQUAL(alloc_plain(), 0);
}

static void prepare_ordered(void)
{
	CHECK_EQUAL(alloc_ordered(), 0);
}

static void prepare_primary(void)
{
	CHECK_EQUAL(retain_primary(), 0);
}

static void prepare_two_retains(void)
{
	CHECK_EQUAL(retain_primary(), 0);
	CHECK_EQUAL(retain_primary(), 0);
}

static void prepare_pool(void)
{
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
}

static void prepare_used_pool(void)
{
	prepare_pool();
	CHECK_EQUAL(alloc_from_pool(), 0);
}

static void prepare_context(void)
{
	CHECK_EQUAL(create_context(), 0);
}

static void prepare_array(void)
{
	CHECK_EQUAL(create_array(), 0);
}

static void prepare_stacks(void)
{
	CHECK_EQUAL(cu.cuCtxGetLimit(&stack_bytes, LL_CU_LIMIT_STACK_SIZE), 0);
}

static void prepare_green_desc(void)
{
	desc = new_green_desc();
}

static void prepare_green(void)
{
	prepare_green_desc();
	CHECK_EQUAL(create_green(), 0);
}

/* prepare comes before the fault. */
static const struct call {
	const char *name;
	ll_cu_result (*make)(void);
	void (*prepare)(void);
} calls[] = {
    {"cuMemAlloc", alloc_plain, NULL},
    {"cuMemFree", free_plain, prepare_plain},
    {"cuMemFreeAsync of plain memory", free_ordered, prepare_plain},
    {"cuMemAllocPitch", alloc_rows, NULL},
    {"cuMemAllocManaged", alloc_managed, NULL},
    {"cuArrayCreate", create_array, NULL},
    {"cuArray3DCreate", create_box, NULL},
    {"cuArrayDestroy", destroy_array, prepare_array},
    {"cuMipmappedArrayCreate", create_mipmap, NULL},
    {"cuImportExternalMemory", import_external, NULL},
    {"cuMemCreate", create_physical, NULL},
    {"cuMemAllocAsync", alloc_ordered, NULL},
    {"cuMemAllocAsync, again", alloc_ordered, prepare_ordered},
    {"cuMemAllocAsync in the default stream", alloc_ordered_by_default, NULL},
    {"cuMemFreeAsync", free_ordered, prepare_ordered},
    {"cuMemFree of a pool's block", free_plain, prepare_ordered},
    {"cuMemAllocFromPoolAsync", alloc_from_pool, prepare_pool},
    {"cuMemAllocFromPoolAsync, again", alloc_from_pool, prepare_used_pool},
    {"cuGraphLaunch", launch_graph, make_graph},
    {"cuGraphUpload", upload_graph, make_graph},
    {"cuCtxCreate", create_context, NULL},
    {"cuCtxDestroy", destroy_context, prepare_context},
    {"cuDevicePrimaryCtxRetain", retain_primary, NULL},
    {"cuDevicePrimaryCtxRetain, again", retain_primary, prepare_primary},
    {"cuDevicePrimaryCtxRelease", release_primary, prepare_two_retains},
    {"cuDevicePrimaryCtxReset", reset_primary, prepare_primary},
    {"cuGreenCtxCreate", create_green, prepare_green_desc},
    {"cuGreenCtxDestroy", destroy_green, prepare_green},
    {"cuCtxSetLimit", grow_stacks, prepare_stacks},
};
enum { CALLS = sizeof calls / sizeof *calls };

/* ---- one call and one fault ---- */

static void set_fault(const char *function, bool is_on)
{
	char command[128];
	snprintf(command, sizeof command, is_on ? "fail %s %d" : "heal %s", function, FAULT);
	CHECK_EQUAL(simctl(command), 0);
}

/* What the card has for this process beyond what its tenant is charged. */
static void check_covered(uint64_t spare_bytes)
{
	uint64_t used = card_used(), charge = charged();
	if (used > charge + spare_bytes + SLACK_BYTES)
		give_up_numbers(__FILE__, __LINE__, "used <= charged", (long long)(used / MIB),
				(long long)(charge / MIB));
}

static void begin(const struct call *call, bool is_evictable)
{
	if (is_evictable)
		govern_evictable(64 * GIB);
	else
		govern(64 * GIB);
	open_context(0);
	stream = new_stream();
	if (call->prepare)
		call->prepare();
}

static void try_call(const struct call *call, const char *function, bool is_evictable)
{
	begin(call, is_evictable);
	uint64_t used = card_used(), charge = charged();
	uint64_t spare_bytes = used > charge ? used - charge : 0;
	CHECK(spare_bytes < 2 * MIB);
	set_fault(function, true);
	ll_cu_result status = call->make();
	set_fault(function, false);
	check_covered(spare_bytes);
	if (status == LL_CUDA_SUCCESS)
		return;
	CHECK_EQUAL(status, FAULT);
	CHECK_EQUAL(charged(), charge);
	CHECK_NEAR(card_used(), used, SLACK_BYTES);
	/* Nothing is broken. */
	CHECK_EQUAL(call->make(), LL_CUDA_SUCCESS);
	check_covered(spare_bytes);
}

/* ---- questions ---- */

/* An inner function that fails, and a call whose answer would be of the card and not of the tenant. */
static void body_questions(void)
{
	size_t free_bytes, total_bytes;
	struct ll_nvml_memory memory;
	unsigned count = 0;
	govern(4 * GIB);
	open_context(0);
	struct ll_nvml_device *card = open_card(0);
	set_fault("cuCtxGetCurrent", true);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), FAULT);
	set_fault("cuCtxGetCurrent", false);
	set_fault("cuDeviceGetUuid_v2", true);
	CHECK_EQUAL(cu.cuDeviceTotalMem(&total_bytes, 0), 0);
	CHECK_EQUAL(total_bytes, 4 * GIB);
	set_fault("cuDeviceGetUuid_v2", false);
	CHECK_EQUAL(simctl("fail nvmlDeviceGetUUID NVML_ERROR_UNKNOWN"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), LL_NVML_ERROR_UNKNOWN);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), LL_NVML_ERROR_UNKNOWN);
	CHECK_EQUAL(simctl("heal nvmlDeviceGetUUID"), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(total_bytes, 4 * GIB);
}

static void body_untold_card(void)
{
	size_t total_bytes;
	govern(4 * GIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	set_fault("cuDeviceGetUuid_v2", true);
	CHECK_EQUAL(cu.cuDeviceTotalMem(&total_bytes, 0), 0);
	CHECK_EQUAL(total_bytes, 4 * GIB);
	CHECK_EQUAL(create_context(), FAULT);
	CHECK_EQUAL(retain_primary(), FAULT);
	CHECK_EQUAL(create_physical(), FAULT);
	set_fault("cuDeviceGetUuid_v2", false);
	CHECK_EQUAL(create_context(), 0);
	check_covered(0);
}

TEST(a_program_is_not_told_of_the_whole_card_when_a_question_fails)
{
	in_world(NULL, body_questions);
	in_world(NULL, body_untold_card);
}

TEST_IN_WORLD(NULL, of_a_card_that_is_not_there_a_limited_program_gets_the_driver_s_answer)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE, .id = 5}};
	govern(4 * GIB);
	open_cuda();
	CHECK_EQUAL(cu.cuCtxCreate(&made_context, 0, 5), LL_CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&made_context, 0, 5), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&made_context, 5), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 8 * MIB, &prop, 0), LL_CUDA_ERROR_INVALID_DEVICE);
}

/* ---- events ---- */

/* The limit has room for one block. Another stream may have it when its own has come to the free. */
TEST_IN_WORLD(NULL, an_event_that_fails_is_not_called_out_of_memory)
{
	govern_evictable(CONTEXT_BYTES + 100 * MIB);
	open_context(0);
	struct ll_cu_stream *busy = new_stream();
	stream = new_stream();
	address = allocate(80 * MIB, busy);
	occupy(busy);
	free_in(address, busy);
	set_fault("cuStreamWaitEvent", true);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 80 * MIB, stream), FAULT);
	CHECK_EQUAL(pool_charge(), 80 * MIB);
	set_fault("cuStreamWaitEvent", false);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, 80 * MIB, stream), 0);
	CHECK_EQUAL(pool_charge(), 80 * MIB);
}

/* ---- all calls and all faults ---- */

/* Which inner functions a call calls, a bit for each: a fault that is to hit once is gone when it has. */
static uint32_t find_inner(const struct call *call)
{
	char commands[8192] = "", line[512];
	const char *folder = getenv("LOADLINE_SIM_LIBRARIES");
	uint32_t inner = (UINT32_C(1) << INNER_FUNCTIONS) - 1;
	for (size_t i = 0; i < INNER_FUNCTIONS; i++) {
		size_t length = strlen(commands);
		snprintf(commands + length, sizeof commands - length, "%s/loadline-simctl hang %s 1us count 1 && ",
			 folder, inner_functions[i]);
	}
	strncat(commands, "true", sizeof commands - strlen(commands) - 1);
	CHECK_EQUAL(run_outside(commands), 0);
	CHECK_EQUAL(call->make(), 0);
	snprintf(line, sizeof line, "%s/loadline-simctl show", folder);
	FILE *shown = popen(line, "r");
	CHECK(shown);
	while (shown && fgets(line, sizeof line, shown)) {
		for (size_t i = 0; i < INNER_FUNCTIONS; i++) {
			size_t length = strlen(inner_functions[i]);
			bool is_left = strncmp(line, "fault of ", 9) == 0 &&
				       strncmp(line + 9, inner_functions[i], length) == 0 && line[9 + length] == ':';
			inner &= ~((uint32_t)is_left << i);
		}
	}
	if (shown)
		pclose(shown);
	CHECK_EQUAL(simctl("heal"), 0);
	return inner;
}

/* In a process of its own: function NULL finds what the call calls. False: the process has failed. */
static bool passes(const struct call *call, const char *function, bool is_evictable, _Atomic uint32_t *inner)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		if (function) {
			try_call(call, function, is_evictable);
		} else {
			begin(call, is_evictable);
			*inner = find_inner(call);
		}
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (status)
		printf("%s fails in %s%s\n", function ? function : "nothing", call->name,
		       is_evictable ? ", evictable" : "");
	WAIT_FOR(card_used() == 0);
	return !status;
}

static void try_all(bool is_evictable)
{
	unsigned failed = 0, tried = 0;
	_Atomic uint32_t *inner = mmap(NULL, sizeof *inner, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(inner != MAP_FAILED);
	for (size_t i = 0; i < CALLS; i++) {
		*inner = 0;
		failed += !passes(&calls[i], NULL, is_evictable, inner);
		for (size_t j = 0; j < INNER_FUNCTIONS; j++) {
			if (!(*inner >> j & 1))
				continue;
			failed += !passes(&calls[i], inner_functions[j], is_evictable, NULL);
			tried++;
		}
	}
	printf("%u pairs\n", tried);
	CHECK_EQUAL(failed, 0);
	CHECK(tried >= CALLS); /* most calls make several, few make none */
}

TEST_IN_WORLD(NULL, a_call_inside_a_hook_that_fails_is_answered_and_leaves_nothing_uncharged)
{
	try_all(false);
}

TEST_IN_WORLD(NULL, the_same_in_an_evictable_program)
{
	try_all(true);
}
