/*
 * Hooks of NVML's functions for memory and processes. If the program has a memory limit, they report the limit as the
 * card's size and the tenant's processes as the card's processes. Without a limit they change nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"
#include "shim/memory/report.h"

enum { UUID_SIZE = 96, CLAIMS = 256, MOST_PROCESSES = 4096 };

/* NVML also shows the whole card to a program on a MIG slice. If the program asks about the whole card, it gets the
 * answers for its slice. */
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

static unsigned long long least_of(unsigned long long a, unsigned long long b)
{
	return a < b ? a : b;
}

/* Gives the UUID of the card and the report for the program. *ret_is_limited is false if the program has no limit on
 * the card. Returns NVML's error if NVML does not give the UUID. */
static ll_nvml_result find_report(struct ll_nvml_device *device, char uuid[UUID_SIZE], struct ll_report *ret_report,
				  bool *ret_is_limited)
{
	ll_nvml_result status = ll_real_nvml()->nvmlDeviceGetUUID(device, uuid, UUID_SIZE);
	*ret_is_limited = false;
	if (status != LL_NVML_SUCCESS)
		return status == LL_NVML_ERROR_FUNCTION_NOT_FOUND ? LL_NVML_SUCCESS : status;
	find_slice(device, uuid);
	*ret_is_limited = ll_report_card(uuid, ret_report);
	return LL_NVML_SUCCESS;
}

/* Defines the hook of a memory query. note: a further statement that runs if there is a limit. */
#define MEMORY_HOOK(symbol, type, note)                                                                                \
	LL_HOOK_EXPORT ll_nvml_result symbol(struct ll_nvml_device *device, type *memory)                              \
	{                                                                                                              \
		char uuid[UUID_SIZE];                                                                                  \
		struct ll_report report;                                                                               \
		bool is_limited;                                                                                       \
		ll_nvml_result status = ll_real_nvml()->symbol(device, memory);                                        \
		if (status != LL_NVML_SUCCESS || ll_charge_passes())                                                   \
			return status;                                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		status = find_report(device, uuid, &report, &is_limited);                                              \
		if (!is_limited)                                                                                       \
			return status;                                                                                 \
		note;                                                                                                  \
		memory->total_bytes = least_of(memory->total_bytes, report.limit_bytes);                               \
		memory->used_bytes = least_of(memory->total_bytes, report.used_bytes);                                 \
		memory->free_bytes = memory->total_bytes - memory->used_bytes;                                         \
		return status;                                                                                         \
	}

MEMORY_HOOK(nvmlDeviceGetMemoryInfo, struct ll_nvml_memory, )
MEMORY_HOOK(nvmlDeviceGetMemoryInfo_v2, struct ll_nvml_memory_v2, memory->reserved_bytes = 0)

/* Gives the charged bytes of a process. Returns false if the process does not belong to the tenant. */
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
 * Returns the result that NVML gives for a list of `found` processes and a buffer with room for `room`. Without
 * processes it needs no buffer. A buffer that is too small is reported before a missing buffer (bench/c/null_outs.txt).
 * The library cannot ask NVML for this result, because it would count the processes of all tenants.
 */
static ll_nvml_result answer_list(unsigned found, unsigned room, const void *buffer)
{
	if (found > room)
		return LL_NVML_ERROR_INSUFFICIENT_SIZE;
	return found && !buffer ? LL_NVML_ERROR_INVALID_ARGUMENT : LL_NVML_SUCCESS;
}

/*
 * Defines the hook of a list of processes. The lists differ only in their names and entries. The hook first reads the
 * whole list into a buffer of the library. So it knows the length and can report it as NVML does: with
 * INSUFFICIENT_SIZE if the program's buffer is too small.
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
		status = answer_list(kept, *count, ret_processes);                                                     \
		*count = kept;                                                                                         \
		return status;                                                                                         \
	}                                                                                                              \
	LL_HOOK_EXPORT ll_nvml_result symbol(struct ll_nvml_device *device, unsigned int *count, entry *ret_processes) \
	{                                                                                                              \
		char uuid[UUID_SIZE];                                                                                  \
		struct ll_report report;                                                                               \
		bool is_limited;                                                                                       \
		if (ll_charge_passes() || !count)                                                                      \
			return ll_real_nvml()->symbol(device, count, ret_processes);                                   \
		LL_REENTRY_SCOPE();                                                                                    \
		ll_nvml_result status = find_report(device, uuid, &report, &is_limited);                               \
		if (status != LL_NVML_SUCCESS)                                                                         \
			return status;                                                                                 \
		return is_limited ? symbol##_own(device, uuid, count, ret_processes)                                   \
				  : ll_real_nvml()->symbol(device, count, ret_processes);                              \
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

/* The same for the newest list. The list structure contains its parameters. */
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
	status = answer_list(kept, list->count, list->processes);
	list->count = kept;
	return status;
}

/* The hook refuses a list version that the library does not know, as an older NVML does. */
LL_HOOK_EXPORT ll_nvml_result nvmlDeviceGetRunningProcessDetailList(struct ll_nvml_device *device,
								    struct ll_nvml_process_detail_list *list)
{
	char uuid[UUID_SIZE];
	struct ll_report report;
	bool is_limited;
	if (ll_charge_passes() || !list)
		return ll_real_nvml()->nvmlDeviceGetRunningProcessDetailList(device, list);
	LL_REENTRY_SCOPE();
	ll_nvml_result status = find_report(device, uuid, &report, &is_limited);
	if (status != LL_NVML_SUCCESS)
		return status;
	if (!is_limited)
		return ll_real_nvml()->nvmlDeviceGetRunningProcessDetailList(device, list);
	if (list->version != LL_NVML_PROCESS_DETAIL_LIST_V1)
		return LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return own_details(device, uuid, list);
}
