/*
 * The newest list of processes: it carries its version, what is asked and the answer in one. Nobody here has protected
 * memory.
 */
#include "nvml/local.h"

static ll_nvml_result list_mode(struct ll_nvml_device *device, unsigned mode, unsigned *count,
				struct ll_nvml_process *ret_processes)
{
	switch (mode) {
	case LL_NVML_PROCESS_MODE_COMPUTE:
		return nvmlDeviceGetComputeRunningProcesses_v3(device, count, ret_processes);
	case LL_NVML_PROCESS_MODE_GRAPHICS:
		return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, ret_processes);
	case LL_NVML_PROCESS_MODE_MPS:
		return nvmlDeviceGetMPSComputeRunningProcesses_v3(device, count, ret_processes);
	default:
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	}
}

ll_nvml_result nvmlDeviceGetRunningProcessDetailList(struct ll_nvml_device *device,
						     struct ll_nvml_process_detail_list *list)
{
	struct ll_nvml_process found[SIM_PROCS];
	unsigned count = SIM_PROCS;
	SIM_NVML_ENTER();
	if (!list)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (list->version != LL_NVML_PROCESS_DETAIL_LIST_V1)
		return LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	ll_nvml_result status = list_mode(device, list->mode, &count, found);
	if (status)
		return status;
	for (unsigned i = 0; i < count && i < list->count && list->processes; i++)
		list->processes[i] = (struct ll_nvml_process_detail){
		    .pid = found[i].pid,
		    .used_bytes = found[i].used_bytes,
		    .gpu_instance_id = found[i].gpu_instance_id,
		    .compute_instance_id = found[i].compute_instance_id,
		};
	bool is_short = count && (count > list->count || !list->processes);
	list->count = count;
	return is_short ? LL_NVML_ERROR_INSUFFICIENT_SIZE : LL_NVML_SUCCESS;
}
