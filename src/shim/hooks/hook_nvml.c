/*
 * NVML's readings that a program sizes itself by, or sees others in. With a memory limit the card shown is as large as
 * the limit, and its processes are those of the tenant; without one nothing is changed.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/report.h"

enum { UUID_SIZE = 96, CLAIMS = 256, MOST_PROCESSES = 4096 };

/* NVML shows a program on a MIG slice the whole card too: it is told what it is told of its slice. */
static void find_slice(struct ll_nvml_device *card, char uuid[UUID_SIZE])
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	unsigned slices = 0;
	if (!visible || strncmp(visible, "MIG-", 4) != 0 || strncmp(uuid, "GPU-", 4) != 0 ||
	    ll_real_nvml()->nvmlDeviceGetMaxMigDeviceCount(card, &slices) != LL_NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < slices; i++) {
		char name[UUID_SIZE];
		struct ll_nvml_device *slice;
		if (ll_real_nvml()->nvmlDeviceGetMigDeviceHandleByIndex(card, i, &slice) == LL_NVML_SUCCESS &&
		    ll_real_nvml()->nvmlDeviceGetUUID(slice, name, UUID_SIZE) == LL_NVML_SUCCESS &&
		    strcmp(name, visible) == 0)
			memcpy(uuid, name, UUID_SIZE);
	}
}

/* The UUID that the card has in the ledger; false: it has no limit here. */
static bool find_report(struct ll_nvml_device *device, char uuid[UUID_SIZE], struct ll_report *ret_report)
{
	if (ll_real_nvml()->nvmlDeviceGetUUID(device, uuid, UUID_SIZE) != LL_NVML_SUCCESS)
		return false;
	find_slice(device, uuid);
	return ll_report_card(uuid, ret_report);
}

LL_HOOK_EXPORT ll_nvml_result nvmlDeviceGetMemoryInfo(struct ll_nvml_device *device, struct ll_nvml_memory *ret_memory)
{
	char uuid[UUID_SIZE];
	struct ll_report report;
	ll_nvml_result status = ll_real_nvml()->nvmlDeviceGetMemoryInfo(device, ret_memory);
	if (status != LL_NVML_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	if (!find_report(device, uuid, &report))
		return status;
	if (report.limit_bytes < ret_memory->total_bytes)
		ret_memory->total_bytes = report.limit_bytes;
	ret_memory->used_bytes =
	    report.used_bytes < ret_memory->total_bytes ? report.used_bytes : ret_memory->total_bytes;
	ret_memory->free_bytes = ret_memory->total_bytes - ret_memory->used_bytes;
	return status;
}

LL_HOOK_EXPORT ll_nvml_result nvmlDeviceGetMemoryInfo_v2(struct ll_nvml_device *device,
							 struct ll_nvml_memory_v2 *memory)
{
	char uuid[UUID_SIZE];
	struct ll_report report;
	ll_nvml_result status = ll_real_nvml()->nvmlDeviceGetMemoryInfo_v2(device, memory);
	if (status != LL_NVML_SUCCESS || ll_charge_passes())
		return status;
	LL_REENTRY_SCOPE();
	if (!find_report(device, uuid, &report))
		return status;
	if (report.limit_bytes < memory->total_bytes)
		memory->total_bytes = report.limit_bytes;
	memory->reserved_bytes = 0;
	memory->used_bytes = report.used_bytes < memory->total_bytes ? report.used_bytes : memory->total_bytes;
	memory->free_bytes = memory->total_bytes - memory->used_bytes;
	return status;
}

/* Charged bytes of that process; false: it is not the tenant's. */
static bool find_process(const struct ll_port_process *own, size_t count, unsigned pid, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	bool is_own = false;
	for (size_t i = 0; i < count; i++) {
		if (own[i].pid == pid) {
			bytes += own[i].used_bytes;
			is_own = true;
		}
	}
	*ret_bytes = bytes;
	return is_own;
}

/*
 * The lists differ in their names and entries alone. The whole list is read first, into a buffer of ours, so that its
 * length can be told as the library tells it: with INSUFFICIENT_SIZE when the program's buffer is too small.
 */
#define LIST(symbol, entry)                                                                                            \
	static ll_nvml_result symbol##_own(struct ll_nvml_device *device, const char *uuid, unsigned *count,           \
					   entry *ret_processes)                                                       \
	{                                                                                                              \
		struct ll_port_process own[CLAIMS];                                                                    \
		size_t own_count = ll_report_processes(uuid, own, CLAIMS);                                             \
		unsigned all = MOST_PROCESSES, kept = 0;                                                               \
		entry *list = calloc(MOST_PROCESSES, sizeof *list);                                                    \
		if (!list)                                                                                             \
			return LL_NVML_ERROR_MEMORY;                                                                   \
		ll_nvml_result status = ll_real_nvml()->symbol(device, &all, list);                                    \
		for (unsigned i = 0; status == LL_NVML_SUCCESS && i < all; i++) {                                      \
			uint64_t bytes;                                                                                \
			if (!find_process(own, own_count, list[i].pid, &bytes))                                        \
				continue;                                                                              \
			list[i].used_bytes = bytes;                                                                    \
			if (kept < *count && ret_processes)                                                            \
				ret_processes[kept] = list[i];                                                         \
			kept++;                                                                                        \
		}                                                                                                      \
		free(list);                                                                                            \
		if (status != LL_NVML_SUCCESS)                                                                         \
			return status;                                                                                 \
		bool is_short = kept > *count;                                                                         \
		*count = kept;                                                                                         \
		return is_short ? LL_NVML_ERROR_INSUFFICIENT_SIZE : LL_NVML_SUCCESS;                                   \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_nvml_result symbol(struct ll_nvml_device *device, unsigned int *count, entry *ret_processes) \
	{                                                                                                              \
		char uuid[UUID_SIZE];                                                                                  \
		struct ll_report report;                                                                               \
		if (ll_charge_passes() || !count)                                                                      \
			return ll_real_nvml()->symbol(device, count, ret_processes);                                   \
		LL_REENTRY_SCOPE();                                                                                    \
		if (!find_report(device, uuid, &report))                                                               \
			return ll_real_nvml()->symbol(device, count, ret_processes);                                   \
		return symbol##_own(device, uuid, count, ret_processes);                                               \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, struct ll_nvml_process_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, struct ll_nvml_process)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, struct ll_nvml_process)
LIST(nvmlDeviceGetGraphicsRunningProcesses, struct ll_nvml_process_v1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, struct ll_nvml_process)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, struct ll_nvml_process)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, struct ll_nvml_process_v1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct ll_nvml_process)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct ll_nvml_process)

static ll_nvml_result read_details(struct ll_nvml_device *device, unsigned mode,
				   struct ll_nvml_process_detail_list *all)
{
	*all = (struct ll_nvml_process_detail_list){
	    .version = LL_NVML_PROCESS_DETAIL_LIST_V1,
	    .mode = mode,
	    .count = MOST_PROCESSES,
	    .processes = calloc(MOST_PROCESSES, sizeof *all->processes),
	};
	return all->processes ? ll_real_nvml()->nvmlDeviceGetRunningProcessDetailList(device, all)
			      : LL_NVML_ERROR_MEMORY;
}

/* The newest list, which says what it wants in itself. */
static ll_nvml_result own_details(struct ll_nvml_device *device, const char *uuid,
				  struct ll_nvml_process_detail_list *list)
{
	struct ll_port_process own[CLAIMS];
	struct ll_nvml_process_detail_list all;
	size_t own_count = ll_report_processes(uuid, own, CLAIMS);
	unsigned kept = 0;
	ll_nvml_result status = read_details(device, list->mode, &all);
	for (unsigned i = 0; status == LL_NVML_SUCCESS && i < all.count; i++) {
		uint64_t bytes;
		if (!find_process(own, own_count, all.processes[i].pid, &bytes))
			continue;
		all.processes[i].used_bytes = bytes;
		if (kept < list->count && list->processes)
			list->processes[kept] = all.processes[i];
		kept++;
	}
	free(all.processes);
	if (status != LL_NVML_SUCCESS)
		return status;
	bool is_short = kept > list->count || (kept && !list->processes);
	list->count = kept;
	return is_short ? LL_NVML_ERROR_INSUFFICIENT_SIZE : LL_NVML_SUCCESS;
}

/* A list of a version that is not known here is refused as a library of before it would. */
LL_HOOK_EXPORT ll_nvml_result nvmlDeviceGetRunningProcessDetailList(struct ll_nvml_device *device,
								    struct ll_nvml_process_detail_list *list)
{
	char uuid[UUID_SIZE];
	struct ll_report report;
	if (ll_charge_passes() || !list)
		return ll_real_nvml()->nvmlDeviceGetRunningProcessDetailList(device, list);
	LL_REENTRY_SCOPE();
	if (!find_report(device, uuid, &report))
		return ll_real_nvml()->nvmlDeviceGetRunningProcessDetailList(device, list);
	if (list->version != LL_NVML_PROCESS_DETAIL_LIST_V1)
		return LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return own_details(device, uuid, list);
}
