/* Each fault a scenario can name, as programs meet it. */
#include "process.h"

#include <time.h>

#define MS UINT64_C(1000000)

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

TEST_IN_WORLD("fail cuCtxCreate_v2 CUDA_ERROR_OUT_OF_MEMORY count 2", a_call_fails_a_number_of_times)
{
	struct ll_cu_context *context;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(simctl("show | grep -q '^fault of cuCtxCreate_v2'"), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(simctl("show | grep -q '^fault of'"), 1);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
}

TEST_IN_WORLD(NULL, others_may_have_all_the_memory_for_a_while)
{
	struct ll_cu_context *context;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	uint64_t end_ns = deadline_in_s(1);
	CHECK_EQUAL(simctl("card 0 used all for 1s"), 0);
	ll_cu_result status = cu.cuCtxCreate(&context, 0, 0);
	CHECK(status == LL_CUDA_ERROR_OUT_OF_MEMORY || is_past(end_ns)); /* this process may have been late */
	/* After a while there is room again. */
	WAIT_FOR(cu.cuCtxCreate(&context, 0, 0) == LL_CUDA_SUCCESS);
	CHECK_EQUAL(simctl("card 0 used 142G"), 0);
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuMemAlloc(&address, 2 << 20), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(simctl("card 0 used 0"), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 2 << 20), 0);
}

TEST_IN_WORLD(NULL, an_xid_loses_the_contexts_of_its_card)
{
	struct ll_nvml_device *card = open_card(0);
	struct ll_nvml_event_set *set;
	struct ll_nvml_event event;
	ll_cu_deviceptr address;
	CHECK_EQUAL(nv.nvmlEventSetCreate(&set), 0);
	CHECK_EQUAL(nv.nvmlDeviceRegisterEvents(card, LL_NVML_EVENT_XID_CRITICAL, set), 0);
	CHECK_EQUAL(nv.nvmlEventSetWait(set, &event, 0), LL_NVML_ERROR_TIMEOUT);
	struct ll_cu_context *context = open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct record *record = new_records(1);
	launch_spin(get_kernel("spin_ns"), s, 60000 * MS, record, 0, 0, 1, 1);
	CHECK_EQUAL(simctl("card 0 xid 43"), 0);
	/* Every call of the context says so, waiting ones too, and nothing is written any more. */
	CHECK_EQUAL(cu.cuStreamSynchronize(s), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), LL_CUDA_ERROR_LAUNCH_FAILED);
	CHECK_EQUAL(record->sequence, 0);
	CHECK_EQUAL(nv.nvmlEventSetWait(set, &event, 10000), 0);
	CHECK_EQUAL(event.type, LL_NVML_EVENT_XID_CRITICAL);
	CHECK_EQUAL(event.data, 43);
	CHECK(event.device == card);
	CHECK_EQUAL(nv.nvmlEventSetWait(set, &event, 1), LL_NVML_ERROR_TIMEOUT);
	CHECK_EQUAL(nv.nvmlEventSetFree(set), 0);
	/* The context can be destroyed and another one made. */
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 16), 0);
	/* One process's alone, with a status of its own. */
	CHECK_EQUAL(simctl("card 0 xid 31 CUDA_ERROR_ILLEGAL_INSTRUCTION pid 1"), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
}

TEST_IN_WORLD("at 300ms card 0 xid 31", a_fault_comes_at_its_time)
{
	open_context(0);
	WAIT_FOR(cu.cuCtxSynchronize() == LL_CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_IN_WORLD(NULL, a_card_can_go_and_come_back)
{
	struct ll_nvml_device *card = open_card(0), *again;
	struct ll_nvml_utilization utilization;
	struct ll_cu_context *context = open_context(0), *other;
	CHECK_EQUAL(simctl("card 0 gone on"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), LL_NVML_ERROR_GPU_IS_LOST);
	CHECK_EQUAL(nv.nvmlDeviceGetHandleByIndex(0, &again), LL_NVML_ERROR_GPU_IS_LOST);
	CHECK_EQUAL(cu.cuCtxSynchronize(), LL_CUDA_ERROR_UNKNOWN);
	CHECK_EQUAL(cu.cuCtxCreate(&other, 0, 0), LL_CUDA_ERROR_DEVICE_UNAVAILABLE);
	CHECK_EQUAL(simctl("card 0 gone off"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), LL_CUDA_ERROR_UNKNOWN);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&other, 0, 0), 0);
}

TEST_IN_WORLD("hang cuCtxSynchronize 200ms", calls_can_hang)
{
	struct ll_cu_context *context = open_context(0);
	uint64_t begun_ns = now_ns();
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK(now_ns() - begun_ns >= 200 * MS);
	begun_ns = now_ns();
	CHECK_EQUAL(simctl("heal"), 0);
	CHECK_EQUAL(simctl("suspend 300ms"), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK(now_ns() - begun_ns >= 300 * MS);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
}

TEST_IN_WORLD(NULL, nvml_can_refuse_for_a_while)
{
	struct ll_nvml_device *card = open_card(0);
	struct ll_nvml_utilization utilization;
	CHECK_EQUAL(simctl("fail nvmlDevice* NVML_ERROR_UNKNOWN for 400ms"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), LL_NVML_ERROR_UNKNOWN);
	WAIT_FOR(nv.nvmlDeviceGetUtilizationRates(card, &utilization) == LL_NVML_SUCCESS);
	CHECK_EQUAL(simctl("fail nvmlDeviceGetUtilizationRates 999 after 2"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), LL_NVML_ERROR_UNKNOWN);
	CHECK_EQUAL(simctl("heal nvmlDeviceGetUtilizationRates"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), 0);
}

TEST_IN_WORLD("cards 0\n", a_machine_may_have_no_card)
{
	unsigned count = 7;
	open_cuda();
	open_nvml();
	CHECK_EQUAL(cu.cuInit(0), LL_CUDA_ERROR_NO_DEVICE);
	CHECK_EQUAL(nv.nvmlInit(), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetCount(&count), 0);
	CHECK_EQUAL(count, 0);
}

TEST_IN_WORLD(NULL, simctl_can_play_a_stranger)
{
	struct ll_nvml_utilization utilization;
	struct ll_nvml_device *card = open_card(0);
	unsigned seen = 0;
	CHECK_EQUAL(simctl("busy 0 20 for 2s >/dev/null &"), 0);
	/* A closed loop of 2 ms on and 8 off, less what this machine's host adds to the 8. */
	WAIT_FOR(nv.nvmlDeviceGetUtilizationRates(card, &utilization) == 0 &&
		 (seen = utilization.gpu > seen ? utilization.gpu : seen) >= 10);
	CHECK(seen <= 21);
	WAIT_FOR(simctl("show | grep -q context") == 1);
}
