/* Contexts and memory as a program sees them, and as NVML does beside it. */
#include "process.h"

#include <sys/mman.h>

#define MIB (1 << 20)

static double used_mib(void)
{
	struct ll_nvml_memory memory;
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	return (double)memory.used_bytes / MIB;
}

TEST_IN_WORLD(NULL, a_context_takes_what_it_takes_on_an_h200)
{
	struct ll_cu_context *context;
	double bare = used_mib();
	context = open_context(0);
	CHECK_NEAR(used_mib() - bare, 526.8, 0.05);
	const struct {
		size_t stack_bytes;
		double mib;
	} rule[] = {{512, 394.8}, {256, 328.8}, {128, 295.8}, {64, 279.3}, {0, 262.8}, {1024, 526.8}, {0, 262.8}};
	for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
		size_t now;
		CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, rule[i].stack_bytes), 0);
		CHECK_EQUAL(cu.cuCtxGetLimit(&now, LL_CU_LIMIT_STACK_SIZE), 0);
		CHECK_EQUAL(now, rule[i].stack_bytes);
		CHECK_NEAR(used_mib() - bare, rule[i].mib, 0.05);
	}
	/* The other two limits change nothing, nor do modules. */
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 0), 0);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 0), 0);
	get_kernel("spin_ns");
	CHECK_NEAR(used_mib() - bare, 262.8, 0.05);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	/* What the first CUDA process on a card leaves there until it ends. */
	CHECK_NEAR(used_mib() - bare, 3.25, 0.01);
}

TEST_IN_WORLD(NULL, one_connection_saves_a_mebibyte)
{
	double bare = used_mib();
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	open_context(0);
	CHECK_NEAR(used_mib() - bare, 525.8, 0.05);
	CHECK_EQUAL(cu.cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 0), 0);
	CHECK_NEAR(used_mib() - bare, 261.8, 0.05);
}

TEST_IN_WORLD(NULL, allocations_are_charged_and_refused)
{
	ll_cu_deviceptr small[4], large;
	size_t free_bytes, total_bytes, before;
	open_context(0);
	CHECK_EQUAL(cu.cuMemGetInfo(&before, &total_bytes), 0);
	CHECK_EQUAL(total_bytes >> 20, 143155);
	CHECK_EQUAL(cu.cuMemAlloc(&small[0], 1), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(before - free_bytes, 2 * MIB);
	for (int i = 1; i < 4; i++)
		CHECK_EQUAL(cu.cuMemAlloc(&small[i], 100000), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(before - free_bytes, 2 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&large, UINT64_C(100) << 30), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(before - free_bytes, (UINT64_C(100) << 30) + 2 * MIB);
	ll_cu_deviceptr too_much = 17;
	CHECK_EQUAL(cu.cuMemAlloc(&too_much, UINT64_C(60) << 30), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(too_much, 17);
	CHECK_EQUAL(cu.cuMemFree(large), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&large, UINT64_C(60) << 30), 0);
	CHECK_EQUAL(cu.cuMemFree(large), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQUAL(cu.cuMemFree(small[i]), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(free_bytes, before);
	CHECK_EQUAL(cu.cuMemFree(large), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFree(0), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&large, 0), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD(NULL, device_memory_is_known_by_its_address)
{
	ll_cu_deviceptr address, base;
	size_t bytes;
	unsigned char vector;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10000), 0);
	/* As on a card, the host cannot touch it: mincore knows the mapping, but it has no access. */
	CHECK(mincore((void *)(uintptr_t)address, 1, &vector) == 0);
	CHECK_EQUAL(cu.cuMemGetAddressRange(&base, &bytes, address + 5000), 0);
	CHECK_EQUAL(base, address);
	CHECK_EQUAL(bytes, 10000);
	unsigned type;
	CHECK_EQUAL(cu.cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), 0);
	CHECK_EQUAL(type, LL_CU_MEMORYTYPE_DEVICE);
	int local;
	CHECK_EQUAL(cu.cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&local),
		    LL_CUDA_ERROR_INVALID_VALUE);
	void *host;
	CHECK_EQUAL(cu.cuMemHostAlloc(&host, 4096, LL_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	CHECK_EQUAL(cu.cuMemHostGetDevicePointer(&base, host, 0), 0);
	CHECK_EQUAL(base, (uintptr_t)host);
	CHECK_EQUAL(cu.cuMemHostRegister(host, 4096, 0), LL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_EQUAL(cu.cuMemFreeHost(host), 0);
	CHECK_EQUAL(cu.cuMemFreeHost(host), LL_CUDA_ERROR_INVALID_VALUE);
}

TEST_IN_WORLD("cards 2\n", the_current_context_is_a_stack_of_the_thread)
{
	struct ll_cu_context *a, *b, *current;
	ll_cu_device device;
	open_cuda();
	CHECK_EQUAL(cu.cuCtxGetDevice(&device), LL_CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQUAL(cu.cuInit(1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuCtxGetDevice(&device), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuCtxCreate(&a, 0, 7), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuCtxCreate(&a, 0, 0), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&b, 0, 1), 0);
	CHECK_EQUAL(cu.cuCtxGetDevice(&device), 0);
	CHECK_EQUAL(device, 1);
	CHECK_EQUAL(cu.cuCtxPopCurrent(&current), 0);
	CHECK(current == b);
	CHECK_EQUAL(cu.cuCtxGetCurrent(&current), 0);
	CHECK(current == a);
	CHECK_EQUAL(cu.cuCtxSetCurrent(b), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(b), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(b), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuCtxPushCurrent(b), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuCtxDestroy(a), 0);
	unsigned flags;
	int is_active;
	CHECK_EQUAL(cu.cuDevicePrimaryCtxSetFlags(0, LL_CU_CTX_SCHED_BLOCKING_SYNC), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&a, 0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&b, 0), 0);
	CHECK(a == b);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxGetState(0, &flags, &is_active), 0);
	CHECK_EQUAL(flags, LL_CU_CTX_SCHED_BLOCKING_SYNC);
	CHECK_EQUAL(is_active, 1);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), 0);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRelease(0), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxGetState(0, &flags, &is_active), 0);
	CHECK_EQUAL(is_active, 0);
}

TEST_IN_WORLD(NULL, a_context_for_graphics_is_one_like_any_other)
{
	struct ll_cu_context *context, *current;
	double bare = used_mib();
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQUAL(i == 0 ? cu.cuGLCtxCreate(&context, 0, 0) : cu.cuVDPAUCtxCreate(&context, 0, 0, 1, NULL),
			    0);
		CHECK_NEAR(used_mib() - bare, 526.8, 0.05);
		CHECK_EQUAL(cu.cuCtxGetCurrent(&current), 0);
		CHECK(current == context);
		CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	}
	CHECK_EQUAL(cu.cuGLCtxCreate(&context, 0, 7), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuVDPAUCtxCreate(NULL, 0, 0, 1, NULL), LL_CUDA_ERROR_INVALID_VALUE);
}

static void be_a_welcome_process(void)
{
	open_context(0);
}

TEST_IN_WORLD("card 0 mode exclusive", an_exclusive_card_refuses_a_second_process)
{
	struct ll_cu_context *second;
	enum ll_nvml_compute_mode mode;
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeMode(card, &mode), 0);
	CHECK_EQUAL(mode, LL_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
	struct ll_cu_context *first = open_context(0);
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 0), 0);
	CHECK(simctl("busy 0 count 1") != 0);
	CHECK_EQUAL(cu.cuCtxDestroy(second), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(first), 0);
	CHECK_EQUAL(simctl("busy 0 count 1 >/dev/null"), 0);
	CHECK_EQUAL(simctl("card 0 mode prohibited"), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 0), LL_CUDA_ERROR_DEVICE_UNAVAILABLE);
	CHECK_EQUAL(simctl("card 0 mode default"), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 0), 0);
}

static void hold_the_card(void)
{
	open_context(0);
	ready();
	for (;;)
		sleep_ms(1000);
}

TEST_IN_WORLD("card 0 mode exclusive", an_exclusive_card_is_free_again_after_sigkill)
{
	spawn_and_kill(hold_the_card);
	/* The dead one's context goes away by itself. */
	struct ll_cu_context *context;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	WAIT_FOR(cu.cuCtxCreate(&context, 0, 0) == LL_CUDA_SUCCESS);
	CHECK(simctl("busy 0 count 1") != 0);
}

static void use_what_the_parent_had(void)
{
	int count;
	CHECK_EQUAL(cu.cuDeviceGetCount(&count), LL_CUDA_ERROR_NOT_INITIALIZED);
	CHECK_EQUAL(cu.cuInit(0), LL_CUDA_ERROR_NOT_INITIALIZED);
}

TEST_IN_WORLD(NULL, a_forked_child_cannot_use_its_parent_s_cuda)
{
	join(spawn(be_a_welcome_process)); /* before CUDA is used a child may use it */
	open_cuda();
	join(spawn(be_a_welcome_process)); /* nor does it matter that the library is there */
	struct ll_cu_context *context = open_context(0);
	join(spawn(use_what_the_parent_had));
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
}

static void body_order(void)
{
	ll_cu_device device;
	struct ll_cu_uuid uuid;
	int count;
	char bus[32];
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuDeviceGetCount(&count), 0);
	CHECK_EQUAL(count, 2);
	/* CUDA's first is NVML's third, as the scenario says; CUDA_VISIBLE_DEVICES then picks 2 and 0 of CUDA's order.
	 */
	CHECK_EQUAL(cu.cuDeviceGet(&device, count), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuDeviceGet(&device, 0), 0);
	CHECK_EQUAL(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 0), 0);
	CHECK(strcmp(bus, "0000:18:00.0") == 0);
	CHECK_EQUAL(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 1), 0);
	CHECK(strcmp(bus, "0000:38:00.0") == 0);
	CHECK_EQUAL(cu.cuDeviceGetUuid(&uuid, 1), 0);
	CHECK_EQUAL(uuid.bytes[15], 3);
}

TEST_IN_WORLD("cards 3\ncuda-order 2 1 0\n", cards_come_in_cuda_s_order_and_as_the_environment_says)
{
	setenv("CUDA_VISIBLE_DEVICES", "2,0,9,1", 1);
	body_order();
}

TEST_IN_WORLD("cards 2\n", no_card_reaches_the_memory_of_another)
{
	open_cuda();
	CHECK_EQUAL(cu.cuCtxResetPersistingL2Cache(), LL_CUDA_ERROR_NOT_INITIALIZED);
	struct ll_cu_context *first = open_context(0), *second = open_context(1);
	int can = 1;
	CHECK_EQUAL(cu.cuDeviceCanAccessPeer(&can, 0, 1), 0);
	CHECK_EQUAL(can, 0);
	can = 1;
	CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(&can, LL_CU_P2P_NATIVE_ATOMIC_SUPPORTED, 0, 1), 0);
	CHECK_EQUAL(can, 0);
	CHECK_EQUAL(cu.cuCtxEnablePeerAccess(first, 0), LL_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	CHECK_EQUAL(cu.cuCtxEnablePeerAccess(first, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuCtxEnablePeerAccess(second, 0), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuCtxEnablePeerAccess(NULL, 0), LL_CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQUAL(cu.cuCtxDisablePeerAccess(first), LL_CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	CHECK_EQUAL(cu.cuCtxResetPersistingL2Cache(), 0);
}

TEST_IN_WORLD("cards 2\ncard all peers on\n", cards_that_nvlink_joins_say_so)
{
	int value = 0;
	open_context(0);
	for (enum ll_cu_p2p_attribute i = LL_CU_P2P_ACCESS_SUPPORTED; i <= LL_CU_P2P_ARRAY_ACCESS_SUPPORTED; i++) {
		CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(&value, i, 0, 1), 0);
		CHECK_EQUAL(value, 1);
	}
	CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(&value, LL_CU_P2P_PERFORMANCE_RANK, 1, 0), 0);
	CHECK_EQUAL(value, 0);
	CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(NULL, LL_CU_P2P_ACCESS_SUPPORTED, 0, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(&value, 0, 0, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(&value, LL_CU_P2P_ACCESS_SUPPORTED, 0, 0), LL_CUDA_ERROR_INVALID_DEVICE);
	CHECK_EQUAL(cu.cuDeviceGetP2PAttribute(&value, LL_CU_P2P_ACCESS_SUPPORTED, 0, 2), LL_CUDA_ERROR_INVALID_DEVICE);
}
