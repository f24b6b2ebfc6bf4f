/*
 * Utilisation, memory, processes.
 */
#include <string.h>

#include "card/context.h"
#include "card/defaults.h"
#include "card/memory.h"
#include "card/process.h"
#include "nvml/local.h"

/* The real library requires room for its whole buffer (doc/facts.md). */
enum { PROCESS_SAMPLES = 72 };

/* In MIG mode NVML has no utilisation of the card or of its slices. */
static bool has_utilisation(const struct sim_nvml_view *view)
{
	return !view->is_slice && !view->card->slice_count;
}

static const struct sim_sample *sample_at(const struct sim_card *card, uint32_t number)
{
	return &card->samples[number % SIM_SAMPLES];
}

ll_nvml_result nvmlDeviceGetUtilizationRates(struct ll_nvml_device *device, struct ll_nvml_utilization *ret_utilization)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_utilization)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!has_utilisation(&view))
		return LL_NVML_ERROR_NOT_SUPPORTED;
	uint32_t count = view.card->meter.sample_count;
	ret_utilization->gpu = count ? sample_at(view.card, count - 1)->util_percent : 0;
	ret_utilization->memory = count ? sample_at(view.card, count - 1)->memory_percent : 0;
	return LL_NVML_SUCCESS;
}

static bool pick_value(enum ll_nvml_sampling_type type, const struct sim_sample *sample, unsigned *ret_value)
{
	switch (type) {
	case LL_NVML_TOTAL_POWER_SAMPLES:
		*ret_value = sample->power_mw;
		return true;
	case LL_NVML_GPU_UTILIZATION_SAMPLES:
		*ret_value = sample->util_percent;
		return true;
	case LL_NVML_MEMORY_UTILIZATION_SAMPLES:
		*ret_value = sample->memory_percent;
		return true;
	case LL_NVML_PROCESSOR_CLK_SAMPLES:
		*ret_value = sample->sm_mhz;
		return true;
	case LL_NVML_MEMORY_CLK_SAMPLES:
		*ret_value = sample->memory_mhz;
		return true;
	default:
		return false;
	}
}

ll_nvml_result nvmlDeviceGetSamples(struct ll_nvml_device *device, enum ll_nvml_sampling_type type,
				    unsigned long long after_us, enum ll_nvml_value_type *ret_type, unsigned int *count,
				    struct ll_nvml_sample *ret_samples)
{
	SIM_NVML_OPEN(view, device);
	static const struct sim_sample none;
	unsigned value;
	if (!ret_type || !count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!pick_value(type, &none, &value) || !has_utilisation(&view))
		return LL_NVML_ERROR_NOT_SUPPORTED;
	*ret_type = LL_NVML_VALUE_TYPE_UNSIGNED_INT;
	if (!ret_samples) {
		*count = SIM_SAMPLES;
		return LL_NVML_SUCCESS;
	}
	uint32_t last = view.card->meter.sample_count;
	uint32_t first = last > SIM_SAMPLES ? last - SIM_SAMPLES : 0;
	while (first < last && sample_at(view.card, first)->wall_us <= after_us)
		first++;
	unsigned filled = 0;
	for (uint32_t i = first; i < last && filled < *count; i++) {
		const struct sim_sample *sample = sample_at(view.card, i);
		pick_value(type, sample, &value);
		ret_samples[filled++] = (struct ll_nvml_sample){.time_us = sample->wall_us, .value.as_uint = value};
	}
	*count = filled;
	return filled ? LL_NVML_SUCCESS : LL_NVML_ERROR_NOT_FOUND;
}

struct memory {
	uint64_t total, reserved, used;
};

static struct memory memory_of(const struct sim_nvml_view *view)
{
	const struct sim_card *card = view->card;
	uint64_t used = sim_card_used_bytes(view->w, view->index);
	return (struct memory){
	    .total = card->memory_bytes + card->reserved_bytes,
	    .reserved = card->reserved_bytes,
	    .used = used < card->memory_bytes ? used : card->memory_bytes,
	};
}

ll_nvml_result nvmlDeviceGetMemoryInfo(struct ll_nvml_device *device, struct ll_nvml_memory *ret_memory)
{
	SIM_NVML_OPEN(view, device);
	if (!ret_memory)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	struct memory memory = memory_of(&view);
	ret_memory->total_bytes = memory.total;
	ret_memory->used_bytes = memory.used + memory.reserved;
	ret_memory->free_bytes = memory.total - ret_memory->used_bytes;
	return LL_NVML_SUCCESS;
}

ll_nvml_result nvmlDeviceGetMemoryInfo_v2(struct ll_nvml_device *device, struct ll_nvml_memory_v2 *memory)
{
	SIM_NVML_OPEN(view, device);
	if (!memory)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (memory->version != LL_NVML_MEMORY_V2)
		return LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	struct memory now = memory_of(&view);
	memory->total_bytes = now.total;
	memory->reserved_bytes = now.reserved;
	memory->used_bytes = now.used;
	memory->free_bytes = now.total - now.used - now.reserved;
	return LL_NVML_SUCCESS;
}

/* Returns NVML's status for a list of `found` processes. An empty list needs no array. Too little room is reported
 * before a missing array (bench/c/null_outs.txt). */
static ll_nvml_result answer_list(unsigned found, unsigned room, const void *place)
{
	if (found > room)
		return LL_NVML_ERROR_INSUFFICIENT_SIZE;
	return found && !place ? LL_NVML_ERROR_INVALID_ARGUMENT : LL_NVML_SUCCESS;
}

/* Lists processes with a context on the card: the clients of MPS, or all processes, which include its server and its
 * clients. */
static ll_nvml_result list_processes(const struct sim_nvml_view *view, bool are_clients, unsigned int *count,
				     struct ll_nvml_process *ret_processes)
{
	if (!count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	unsigned room = *count, found = 0;
	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *proc = &view->w->procs[i];
		if (!proc->is_used || (are_clients && !proc->mps.server) || !sim_context_count(view->w, view->index, i))
			continue;
		uint64_t bytes = sim_proc_used_bytes(view->w, view->index, i);
		int32_t pid = sim_proc_pid(view->w, i);
		if (!pid) /* like the driver, which omits processes outside of the caller's PID namespace */
			continue;
		if (found < room && ret_processes) {
			ret_processes[found] = (struct ll_nvml_process){
			    .pid = (unsigned)pid,
			    .used_bytes = bytes > SIM_UNLISTED_BYTES ? bytes - SIM_UNLISTED_BYTES : 0,
			    .gpu_instance_id = view->is_slice ? view->card->gpu_instance_id : UINT32_MAX,
			    .compute_instance_id = view->is_slice ? 0 : UINT32_MAX,
			};
		}
		found++;
	}
	*count = found;
	return answer_list(found, room, ret_processes);
}

ll_nvml_result nvmlDeviceGetComputeRunningProcesses_v3(struct ll_nvml_device *device, unsigned int *count,
						       struct ll_nvml_process *ret_processes)
{
	SIM_NVML_OPEN(view, device);
	return list_processes(&view, false, count, ret_processes);
}

ll_nvml_result nvmlDeviceGetMPSComputeRunningProcesses_v3(struct ll_nvml_device *device, unsigned int *count,
							  struct ll_nvml_process *ret_processes)
{
	SIM_NVML_OPEN(view, device);
	return list_processes(&view, true, count, ret_processes);
}

ll_nvml_result nvmlDeviceGetMPSComputeRunningProcesses_v2(struct ll_nvml_device *device, unsigned int *count,
							  struct ll_nvml_process *ret_processes)
{
	SIM_NVML_ENTER();
	return nvmlDeviceGetMPSComputeRunningProcesses_v3(device, count, ret_processes);
}

ll_nvml_result nvmlDeviceGetComputeRunningProcesses_v2(struct ll_nvml_device *device, unsigned int *count,
						       struct ll_nvml_process *ret_processes)
{
	SIM_NVML_ENTER();
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, ret_processes);
}

/* Lists them in the layout of the first version. */
static ll_nvml_result list_processes_v1(struct ll_nvml_device *device, bool are_clients, unsigned int *count,
					struct ll_nvml_process_v1 *ret_processes)
{
	struct ll_nvml_process found[SIM_PROCS];
	unsigned room = count ? *count : 0, n = SIM_PROCS;
	if (!count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	ll_nvml_result status = are_clients ? nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &n, found)
					    : nvmlDeviceGetComputeRunningProcesses_v3(device, &n, found);
	if (status)
		return status;
	for (unsigned i = 0; i < n && i < room && ret_processes; i++)
		ret_processes[i] = (struct ll_nvml_process_v1){.pid = found[i].pid, .used_bytes = found[i].used_bytes};
	*count = n;
	return answer_list(n, room, ret_processes);
}

ll_nvml_result nvmlDeviceGetComputeRunningProcesses(struct ll_nvml_device *device, unsigned int *count,
						    struct ll_nvml_process_v1 *ret_processes)
{
	SIM_NVML_ENTER();
	return list_processes_v1(device, false, count, ret_processes);
}

ll_nvml_result nvmlDeviceGetMPSComputeRunningProcesses(struct ll_nvml_device *device, unsigned int *count,
						       struct ll_nvml_process_v1 *ret_processes)
{
	SIM_NVML_ENTER();
	return list_processes_v1(device, true, count, ret_processes);
}

/* Returns an empty list, because these cards have no graphics processes. */
static ll_nvml_result answer_nobody(const char *function, struct ll_nvml_device *device, unsigned *count)
{
	struct sim_nvml_view view;
	ll_nvml_result status = sim_nvml_open(function, device, &view);
	if (status)
		return status;
	sim_nvml_close(&view);
	if (!count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return LL_NVML_SUCCESS;
}

#define ANSWER_NOBODY(function, entry)                                                                                 \
	ll_nvml_result function(struct ll_nvml_device *device, unsigned int *count, entry *ret_processes)              \
	{                                                                                                              \
		(void)ret_processes;                                                                                   \
		return answer_nobody(__func__, device, count);                                                         \
	}

ANSWER_NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v3, struct ll_nvml_process)
ANSWER_NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v2, struct ll_nvml_process)
ANSWER_NOBODY(nvmlDeviceGetGraphicsRunningProcesses, struct ll_nvml_process_v1)

/* NVML does not distinguish processes: each gets the card's total (doc/facts.md). */
ll_nvml_result nvmlDeviceGetProcessUtilization(struct ll_nvml_device *device,
					       struct ll_nvml_process_utilization *ret_samples, unsigned int *count,
					       unsigned long long after_us)
{
	SIM_NVML_OPEN(view, device);
	if (!count)
		return LL_NVML_ERROR_INVALID_ARGUMENT;
	if (!has_utilisation(&view))
		return LL_NVML_ERROR_NOT_SUPPORTED;
	if (!ret_samples || *count < PROCESS_SAMPLES) {
		*count = PROCESS_SAMPLES;
		return LL_NVML_ERROR_INSUFFICIENT_SIZE;
	}
	uint32_t windows = view.card->meter.sample_count;
	const struct sim_sample *last = windows ? sample_at(view.card, windows - 1) : NULL;
	unsigned filled = 0;
	for (uint32_t i = 0; last && last->wall_us > after_us && i < SIM_PROCS && filled < *count; i++) {
		if (!view.w->procs[i].is_used || !sim_context_count(view.w, view.index, i) || !sim_proc_pid(view.w, i))
			continue;
		ret_samples[filled++] = (struct ll_nvml_process_utilization){
		    .pid = (unsigned)sim_proc_pid(view.w, i),
		    .time_us = last->wall_us,
		    .sm_percent = last->util_percent,
		    .memory_percent = last->memory_percent,
		};
	}
	*count = filled;
	return filled ? LL_NVML_SUCCESS : LL_NVML_ERROR_NOT_FOUND;
}

/* ---- lists with details ---- */

/*
 * The newest list of processes. One structure has its version, the request and the reply. No process here has protected
 * memory.
 */

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
	unsigned room = list->count;
	list->count = count;
	return answer_list(count, room, list->processes);
}
