/* What NVML says of a card, beside a load that is known exactly. */
#include "process.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

/* Keeps the card busy for rounds x 100 ms without a hole worth a percent. */
static void keep_busy(unsigned rounds)
{
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	for (unsigned i = 0; i < rounds; i++)
		launch_timed(work, s, 100 * MS, 132, 1024);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
}

static unsigned take_samples(struct ll_nvml_device *card, enum ll_nvml_sampling_type type, unsigned long long after_us,
			     struct ll_nvml_sample *samples, unsigned room)
{
	enum ll_nvml_value_type value_type;
	unsigned count = room;
	ll_nvml_result status = nv.nvmlDeviceGetSamples(card, type, after_us, &value_type, &count, samples);
	if (status == LL_NVML_ERROR_NOT_FOUND)
		return 0;
	CHECK_EQUAL(status, 0);
	CHECK_EQUAL(value_type, LL_NVML_VALUE_TYPE_UNSIGNED_INT);
	return count;
}

TEST_IN_WORLD(NULL, samples_are_windows_of_200_ms)
{
	struct ll_nvml_sample samples[100], more[100];
	struct ll_nvml_utilization now;
	struct ll_nvml_device *card = open_card(0);
	enum ll_nvml_value_type type;
	unsigned count = 0;
	CHECK_EQUAL(nv.nvmlDeviceGetSamples(card, LL_NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, NULL), 0);
	CHECK_EQUAL(count, 70);
	open_context(0);
	keep_busy(9);
	WAIT_FOR((count = take_samples(card, LL_NVML_GPU_UTILIZATION_SAMPLES, 0, samples, 100)) >= 5);
	unsigned full = 0;
	for (unsigned i = 0; i < count; i++) {
		CHECK(i == 0 || samples[i].time_us - samples[i - 1].time_us == 200000);
		full += samples[i].value.as_uint >= 99;
	}
	CHECK(full >= 3); /* whole windows within 0.9 s */
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &now), 0);
	CHECK(now.gpu <= 100);
	/* Only newer ones than those seen. */
	unsigned long long last_us = samples[count - 1].time_us;
	WAIT_FOR((count = take_samples(card, LL_NVML_GPU_UTILIZATION_SAMPLES, last_us, more, 100)) >= 2);
	CHECK_EQUAL(more[0].time_us, last_us + 200000);
	CHECK(take_samples(card, LL_NVML_TOTAL_POWER_SAMPLES, 0, more, 100) >= 5);
	CHECK_EQUAL(nv.nvmlDeviceGetSamples(card, LL_NVML_ENC_UTILIZATION_SAMPLES, 0, &type, &count, more),
		    LL_NVML_ERROR_NOT_SUPPORTED);
}

static void be_a_process(void)
{
	open_context(0);
	ready();
	for (;;)
		pause();
}

TEST_IN_WORLD(NULL, process_lists_follow_processes)
{
	struct ll_nvml_process list[8];
	/* Forked before NVML has its thread: ThreadSanitizer wants it so. */
	pid_t other = spawn_ready(be_a_process);
	struct ll_nvml_device *card = open_card(0);
	unsigned count = 0;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(count, 1);
	open_context(0);
	count = 1;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, list), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(count, 2);
	count = 8;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, list), 0);
	CHECK_EQUAL(count, 2);
	for (unsigned i = 0; i < count; i++) {
		CHECK(list[i].pid == (unsigned)other || list[i].pid == (unsigned)getpid());
		CHECK_NEAR((double)list[i].used_bytes / (1 << 20), 518, 0.1);
		CHECK_EQUAL(list[i].gpu_instance_id, UINT32_MAX);
	}
	count = 1;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	count = 2;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), LL_NVML_ERROR_INVALID_ARGUMENT);
	count = 8;
	CHECK_EQUAL(nv.nvmlDeviceGetMPSComputeRunningProcesses(card, &count, NULL), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetGraphicsRunningProcesses(card, &count, list), 0);
	CHECK_EQUAL(count, 0);
	struct ll_nvml_process_utilization shares[72];
	count = 10;
	CHECK_EQUAL(nv.nvmlDeviceGetProcessUtilization(card, shares, &count, 0), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(count, 72);
	WAIT_FOR((count = 72, nv.nvmlDeviceGetProcessUtilization(card, shares, &count, 0) == LL_NVML_SUCCESS));
	CHECK_EQUAL(count, 2);
	char name[256];
	CHECK_EQUAL(nv.nvmlSystemGetProcessName((unsigned)other, name, sizeof name), 0);
	CHECK(name[0]);
	kill(other, SIGKILL);
	WAIT_FOR((count = 8, nv.nvmlDeviceGetComputeRunningProcesses(card, &count, list) == 0 && count == 1));
	CHECK_EQUAL(list[0].pid, getpid());
}

static double metric(struct ll_nvml_gpm_metrics *metrics, unsigned id)
{
	metrics->version = LL_NVML_GPM_METRICS_VERSION;
	metrics->count = 1;
	metrics->metrics[0].id = id;
	CHECK_EQUAL(nv.nvmlGpmMetricsGet(metrics), 0);
	CHECK_EQUAL(metrics->metrics[0].status, 0);
	return metrics->metrics[0].value;
}

static bool tells_nothing_at_once(struct ll_nvml_device *card, struct ll_nvml_gpm_metrics *metrics)
{
	CHECK_EQUAL(nv.nvmlGpmSampleGet(card, metrics->earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleGet(card, metrics->later), 0);
	double at_once = metric(metrics, LL_NVML_GPM_SM_UTIL);
	return isnan(at_once) || at_once == 0;
}

TEST_IN_WORLD(NULL, gpm_counts_the_sms)
{
	static struct ll_nvml_gpm_metrics metrics;
	struct ll_nvml_gpm_support support = {.version = LL_NVML_GPM_SUPPORT_VERSION};
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlGpmQueryDeviceSupport(card, &support), 0);
	CHECK_EQUAL(support.is_supported, 1);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.later), 0);
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	struct ll_cu_function *work = get_kernel("work_ns");
	/* A kernel that is running before the first sample and after the second: the shares are its own, exactly. */
	launch_timed(work, s, 20000 * MS, 66, 1024);
	sleep_ms(20);
	WAIT_FOR(tells_nothing_at_once(card, &metrics)); /* a busy host may take too long between two samples */
	sleep_ms(300);
	CHECK_EQUAL(nv.nvmlGpmSampleGet(card, metrics.later), 0);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_NOT_READY);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_GRAPHICS_UTIL), 100, 1e-6);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_SM_UTIL), 50, 1e-6);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_SM_OCCUPANCY), 25, 1e-6);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_FP32_UTIL), 0, 1e-6);
	metrics.metrics[0].id = 77;
	CHECK_EQUAL(nv.nvmlGpmMetricsGet(&metrics), 0);
	CHECK_EQUAL(metrics.metrics[0].status, LL_NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(nv.nvmlGpmSampleFree(metrics.earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleFree(metrics.later), 0);
}

/* Two samples, while what was launched before runs all the time. */
static void read_running(struct ll_nvml_device *card, struct ll_nvml_gpm_metrics *metrics)
{
	sleep_ms(20);
	CHECK_EQUAL(nv.nvmlGpmSampleGet(card, metrics->earlier), 0);
	sleep_ms(300);
	CHECK_EQUAL(nv.nvmlGpmSampleGet(card, metrics->later), 0);
}

TEST_IN_WORLD("card 0 tensor-reach 50\ncard 0 dram-reach 80\n", gpm_counts_tensor_pipes_and_reads_of_memory)
{
	static struct ll_nvml_gpm_metrics metrics;
	static const char text[] =
	    ".version 7.4\n.target sm_80\n.visible .entry work_ns_tensor(.param .u64 length_ns) { ret; }\n"
	    ".visible .entry spin_ns_dram(.param .u64 length_ns, .param .u64 record,\n"
	    "	.param .u64 late_after, .param .u64 gap_limit, .param .u64 epoch_seq,\n"
	    "	.param .u64 buffer, .param .u64 buffer_bytes) { ret; }\n";
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.later), 0);
	open_context(0);
	struct ll_cu_module *module;
	struct ll_cu_function *tensor, *dram;
	CHECK_EQUAL(cu.cuModuleLoadData(&module, text), 0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&tensor, module, "work_ns_tensor"), 0);
	CHECK_EQUAL(cu.cuModuleGetFunction(&dram, module, "spin_ns_dram"), 0);
	struct ll_cu_stream *s = new_stream();
	launch_timed(tensor, s, 20000 * MS, 66, 1024);
	ll_cu_deviceptr buffer;
	struct record *record = new_records(1);
	CHECK_EQUAL(cu.cuMemAlloc(&buffer, 1 << 20), 0);
	uint64_t length_ns = 20000 * MS, address = (uintptr_t)record, none = 0, sequence = 1, bytes = 1 << 20;
	void *params[] = {&length_ns, &address, &none, &none, &sequence, &buffer, &bytes};
	CHECK_EQUAL(cu.cuLaunchKernel(dram, 33, 1, 1, 1024, 1, 1, 0, new_stream(), params, NULL), 0);
	read_running(card, &metrics);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_NOT_READY);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_ANY_TENSOR_UTIL), 25, 1e-6);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_DRAM_BW_UTIL), 20, 1e-6);
	/* More than the buffer has: as on a card, a later call says so. */
	bytes = 4 << 20;
	CHECK_EQUAL(cu.cuLaunchKernel(dram, 33, 1, 1, 1024, 1, 1, 0, s, params, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), LL_CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_IN_WORLD("card 0 gpm-tensor off\n", gpm_may_lack_a_reading)
{
	static struct ll_nvml_gpm_metrics metrics = {.version = LL_NVML_GPM_METRICS_VERSION, .count = 2};
	struct ll_nvml_device *card = open_card(0);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.later), 0);
	read_running(card, &metrics);
	metrics.metrics[0].id = LL_NVML_GPM_ANY_TENSOR_UTIL;
	metrics.metrics[1].id = LL_NVML_GPM_DRAM_BW_UTIL;
	CHECK_EQUAL(nv.nvmlGpmMetricsGet(&metrics), 0);
	CHECK_EQUAL(metrics.metrics[0].status, LL_NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(metrics.metrics[1].status, 0);
}

TEST_IN_WORLD("cards 2\ncard 0 capability 8.0\ncard 1 gpm off\n", older_cards_have_no_gpm)
{
	struct ll_nvml_gpm_support support = {.version = LL_NVML_GPM_SUPPORT_VERSION, .is_supported = 1};
	struct ll_nvml_gpm_sample *sample;
	for (unsigned i = 0; i < 2; i++) {
		struct ll_nvml_device *card = open_card(i);
		CHECK_EQUAL(nv.nvmlGpmQueryDeviceSupport(card, &support), 0);
		CHECK_EQUAL(support.is_supported, 0);
		CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&sample), 0);
		CHECK_EQUAL(nv.nvmlGpmSampleGet(card, sample), LL_NVML_ERROR_NOT_SUPPORTED);
		CHECK_EQUAL(nv.nvmlGpmSampleFree(sample), 0);
	}
}

TEST_IN_WORLD(NULL, power_and_clocks_follow_contexts_and_heat)
{
	struct ll_nvml_device *card = open_card(0);
	unsigned milliwatts, celsius, mhz, low, high;
	unsigned long long reasons, millijoules, later;
	CHECK_EQUAL(nv.nvmlDeviceGetPowerUsage(card, &milliwatts), 0);
	CHECK_EQUAL(milliwatts, 77000);
	CHECK_EQUAL(nv.nvmlDeviceGetClockInfo(card, LL_NVML_CLOCK_SM, &mhz), 0);
	CHECK_EQUAL(mhz, 345);
	CHECK_EQUAL(nv.nvmlDeviceGetCurrentClocksEventReasons(card, &reasons), 0);
	CHECK_EQUAL(reasons, LL_NVML_CLOCKS_GPU_IDLE);
	CHECK_EQUAL(nv.nvmlDeviceGetPowerManagementLimitConstraints(card, &low, &high), 0);
	CHECK_EQUAL(high, 700000);
	open_context(0);
	CHECK_EQUAL(nv.nvmlDeviceGetTotalEnergyConsumption(card, &millijoules), 0);
	WAIT_FOR(nv.nvmlDeviceGetPowerUsage(card, &milliwatts) == 0 && milliwatts == 121000);
	CHECK_EQUAL(nv.nvmlDeviceGetTotalEnergyConsumption(card, &later), 0);
	CHECK(later > millijoules + 80000); /* over a second */
	struct ll_nvml_field_value field = {.field = LL_NVML_FI_POWER_INSTANT};
	CHECK_EQUAL(nv.nvmlDeviceGetFieldValues(card, 1, &field), 0);
	CHECK_EQUAL(field.status, 0);
	CHECK_EQUAL(field.value.as_uint, 121000);
	CHECK_EQUAL(nv.nvmlDeviceGetClockInfo(card, LL_NVML_CLOCK_SM, &mhz), 0);
	CHECK_EQUAL(mhz, 1980);
	CHECK_EQUAL(nv.nvmlDeviceGetTemperature(card, LL_NVML_TEMPERATURE_GPU, &celsius), 0);
	CHECK(celsius > 25 && celsius < 40);
	CHECK_EQUAL(simctl("card 0 temperature 93"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetTemperature(card, LL_NVML_TEMPERATURE_GPU, &celsius), 0);
	CHECK_EQUAL(celsius, 93);
	CHECK_EQUAL(nv.nvmlDeviceGetCurrentClocksThrottleReasons(card, &reasons), 0);
	CHECK(reasons & LL_NVML_CLOCKS_HW_THERMAL_SLOWDOWN);
	CHECK_EQUAL(simctl("card 0 temperature 50"), 0);
	CHECK_EQUAL(simctl("card 0 slowdown on"), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetCurrentClocksEventReasons(card, &reasons), 0);
	CHECK(reasons & LL_NVML_CLOCKS_HW_SLOWDOWN);
	CHECK_EQUAL(nv.nvmlDeviceGetClockInfo(card, LL_NVML_CLOCK_SM, &mhz), 0);
	CHECK(mhz < 1980);
}

TEST_IN_WORLD("card 0 mig 2", a_card_in_mig_mode_is_read_by_slice)
{
	static struct ll_nvml_gpm_metrics metrics;
	struct ll_nvml_device *card = open_card(0), *slice, *parent;
	struct ll_nvml_utilization utilization;
	struct ll_nvml_memory memory;
	unsigned now, later, is_slice, id;
	char uuid[96];
	CHECK_EQUAL(nv.nvmlDeviceGetMigMode(card, &now, &later), 0);
	CHECK_EQUAL(now, LL_NVML_DEVICE_MIG_ENABLE);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(card, &utilization), LL_NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(nv.nvmlDeviceGetMigDeviceHandleByIndex(card, 2, &slice), LL_NVML_ERROR_NOT_FOUND);
	CHECK_EQUAL(nv.nvmlDeviceGetMigDeviceHandleByIndex(card, 1, &slice), 0);
	CHECK_EQUAL(nv.nvmlDeviceIsMigDeviceHandle(slice, &is_slice), 0);
	CHECK_EQUAL(is_slice, 1);
	CHECK_EQUAL(nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slice, &parent), 0);
	CHECK(parent == card);
	CHECK_EQUAL(nv.nvmlDeviceGetGpuInstanceId(slice, &id), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(slice, uuid, sizeof uuid), 0);
	CHECK(strncmp(uuid, "MIG-", 4) == 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(slice, &memory), 0);
	CHECK(memory.total_bytes < UINT64_C(20) << 30);
	/* CUDA shows the slice that the environment names; its counters are its own. */
	setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
	int count, sms;
	open_context(0);
	CHECK_EQUAL(cu.cuDeviceGetCount(&count), 0);
	CHECK_EQUAL(count, 1);
	CHECK_EQUAL(cu.cuDeviceGetAttribute(&sms, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 0);
	CHECK_EQUAL(sms, 16);
	launch_timed(get_kernel("work_ns"), NULL, 20000 * MS, 8, 1024);
	sleep_ms(20);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleAlloc(&metrics.later), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleGet(card, metrics.earlier), LL_NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQUAL(nv.nvmlGpmMigSampleGet(card, id, metrics.earlier), 0);
	sleep_ms(200);
	CHECK_EQUAL(nv.nvmlGpmMigSampleGet(card, id, metrics.later), 0);
	CHECK_NEAR(metric(&metrics, LL_NVML_GPM_SM_UTIL), 50, 1e-6);
	CHECK_EQUAL(nv.nvmlGpmSampleFree(metrics.earlier), 0);
	CHECK_EQUAL(nv.nvmlGpmSampleFree(metrics.later), 0);
}

TEST_IN_WORLD("cards 2\n", two_cards_are_apart)
{
	struct ll_nvml_utilization first = {0}, second = {0};
	struct ll_nvml_device *a = open_card(0), *b = open_card(1), *same;
	struct ll_nvml_pci_info pci;
	char uuid[96], other[96];
	open_context(1);
	launch_timed(get_kernel("work_ns"), NULL, 20000 * MS, 1, 32);
	WAIT_FOR(nv.nvmlDeviceGetUtilizationRates(b, &second) == 0 && second.gpu == 100);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(a, &first), 0);
	CHECK_EQUAL(first.gpu, 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(a, uuid, sizeof uuid), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(b, other, sizeof other), 0);
	CHECK(strcmp(uuid, other) != 0);
	CHECK_EQUAL(nv.nvmlDeviceGetHandleByUUID(other, &same), 0);
	CHECK(same == b);
	CHECK_EQUAL(nv.nvmlDeviceGetPciInfo(b, &pci), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetHandleByPciBusId(pci.bus_id, &same), 0);
	CHECK(same == b);
	CHECK_EQUAL(nv.nvmlDeviceGetHandleByUUID("GPU-nobody", &same), LL_NVML_ERROR_NOT_FOUND);
	CHECK_EQUAL(nv.nvmlDeviceGetHandleByIndex(2, &same), LL_NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQUAL(nv.nvmlShutdown(), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUtilizationRates(a, &first), LL_NVML_ERROR_UNINITIALIZED);
}
