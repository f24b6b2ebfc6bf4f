#include "shim/hook.h"

LL_HOOK_EXPORT ll_nvml_result nvmlDeviceGetMemoryInfo(struct ll_nvml_device *device, struct ll_nvml_memory *ret_memory)
{
	return ll_real_nvml()->nvmlDeviceGetMemoryInfo(device, ret_memory);
}

LL_HOOK_EXPORT ll_nvml_result nvmlDeviceGetMemoryInfo_v2(struct ll_nvml_device *device,
							 struct ll_nvml_memory_v2 *memory)
{
	return ll_real_nvml()->nvmlDeviceGetMemoryInfo_v2(device, memory);
}

/* The process lists of the three kinds differ in nothing but their names. */
#define PASS_LIST(symbol, entry)                                                                                       \
	LL_HOOK_EXPORT ll_nvml_result symbol(struct ll_nvml_device *device, unsigned int *count, entry *ret_processes) \
	{                                                                                                              \
		return ll_real_nvml()->symbol(device, count, ret_processes);                                           \
	}

PASS_LIST(nvmlDeviceGetComputeRunningProcesses, struct ll_nvml_process_v1)
PASS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, struct ll_nvml_process)
PASS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, struct ll_nvml_process)
PASS_LIST(nvmlDeviceGetGraphicsRunningProcesses, struct ll_nvml_process_v1)
PASS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, struct ll_nvml_process)
PASS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, struct ll_nvml_process)
PASS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, struct ll_nvml_process_v1)
PASS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct ll_nvml_process)
PASS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct ll_nvml_process)
