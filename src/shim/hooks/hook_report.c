/* Hooks of functions that report the size and the use of the card's memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/device_state.h"
#include "shim/interpose/device_uuid.h"
#include "shim/interpose/hook.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"
#include "shim/residency/residency.h"

/* ---- what the program is told of the card ---- */

/*
 * The answers of a governed program's memory queries: the memory limit as the card's size, and the tenant's
 * charge as used memory.
 *
 * The figures come from the job's page. A program without a device state of the card asks loadlined for the page. An
 * example is nvidia-smi, which never makes a context. If loadlined does not reply, the limit comes from the program's
 * environment. Without a memory limit the library does not change the driver's answers.
 *
 * cuMemGetInfo reports as free memory the rest of the limit, but not more than the driver has free. For an evictable
 * program it reports the rest of the limit or of the card's memory, whichever is less. The memory of other programs
 * does not count, because it is evicted when this program needs the room (residency/link.c). So frameworks choose their
 * sizes by --mem.
 */

struct ll_report {
	uint64_t limit_bytes;
	uint64_t used_bytes; /* charged to the tenant */
};

enum { CARDS = 64 };
#define RETRY_NS (1000 * LL_NS_PER_MS)

/* The cards for which this process has no device state. Their ports stay open. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened {
	char uuid[96];
	struct ll_port *port;
} opened[CARDS];
static uint64_t retry_ns; /* loadlined did not reply; before this time the library does not ask again */

static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	memset(opened, 0, sizeof opened);
	retry_ns = 0;
}

static struct ll_fork_item fork_item = {.in_child = forget_in_child};

static struct ll_device_state *dev_on(const char *uuid)
{
	for (ll_cu_device device = 0; device < CARDS; device++) {
		struct ll_device_state *dev = ll_device_state_of(device);
		if (dev && strcmp(dev->uuid, uuid) == 0)
			return dev;
	}
	return NULL;
}

/* Returns the port of the card; NULL: loadlined does not reply, or no entry is free. */
static struct ll_port *port_of(const char *uuid)
{
	const struct ll_device_state *dev = dev_on(uuid);
	if (dev)
		return dev->port;
	ll_fork_add(&fork_item);
	LL_SCOPE_LOCK(&lock);
	size_t i = 0;
	while (i < CARDS && opened[i].port && strcmp(opened[i].uuid, uuid) != 0)
		i++;
	if (i == CARDS)
		return NULL;
	if (!opened[i].port && ll_now_ns() < retry_ns)
		return NULL;
	if (!opened[i].port && ll_port_open(ll_device_state_settings(), uuid, false, &opened[i].port, NULL) < 0) {
		retry_ns = ll_now_ns() + RETRY_NS;
		return NULL;
	}
	snprintf(opened[i].uuid, sizeof opened[i].uuid, "%s", uuid);
	return opened[i].port;
}

/* Give the limit and the use of a card. Return false if this program has no limit on the card. */
static bool report_card(const char *uuid, struct ll_report *ret_report)
{
	const struct ll_device_state *dev = dev_on(uuid);
	struct ll_memory_view view = {.limit_bytes = ll_device_state_settings()->memory_limit_bytes};
	struct ll_port *port = dev ? NULL : port_of(uuid);
	if (dev)
		ll_port_read_memory(dev->claim, &view);
	else if (port)
		ll_port_read_job(port, &view);
	*ret_report = (struct ll_report){.limit_bytes = view.limit_bytes, .used_bytes = view.used_bytes};
	return view.limit_bytes != 0;
}

static bool report_device(ll_cu_device device, struct ll_report *ret_report)
{
	char uuid[96];
	const struct ll_device_state *dev = ll_device_state_of(device);
	if (dev || ll_device_uuid(device, uuid, sizeof uuid))
		return report_card(dev ? dev->uuid : uuid, ret_report);
	*ret_report = (struct ll_report){.limit_bytes = ll_device_state_settings()->memory_limit_bytes};
	return ret_report->limit_bytes != 0; /* the driver does not report the card's UUID */
}

/* Returns the bytes of the limit that are not used yet. */
static uint64_t report_left(const struct ll_report *report)
{
	return report->used_bytes < report->limit_bytes ? report->limit_bytes - report->used_bytes : 0;
}

/* Writes the tenant's live processes on the card, at most `capacity`. Returns their number, which may be larger. */
static size_t report_processes(const char *uuid, struct ll_port_process *processes, size_t capacity)
{
	struct ll_port *port = port_of(uuid);
	return port ? ll_port_list_processes(port, processes, capacity) : 0;
}

/* ---- of CUDA ---- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Replaces the driver's figures by those of the limit. Returns the driver's error if the driver does not report the
 * card. */
static ll_cu_result limit_info(uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct ll_report report;
	struct ll_cu_context *context;
	struct ll_device_state *dev;
	ll_cu_result status = ll_device_state_find(&context, &dev);
	if (!dev)
		return status;
	ll_pool_true_up_if_used();
	if (!report_device(dev->device, &report))
		return status;
	*total_bytes = least_of(*total_bytes, report.limit_bytes);
	report.limit_bytes = *total_bytes;
	/* The memory of other programs is evicted when this program needs the room. */
	if (ll_residency_backs(dev))
		*free_bytes = report_left(&report);
	else
		*free_bytes = least_of(*free_bytes, report_left(&report));
	return status;
}

/* The driver accepts NULL for either figure. The library needs both figures to limit one, so it asks the driver again
 * for the other. */
#define INFO_HOOK(symbol, type)                                                                                        \
	LL_HOOK_EXPORT ll_cu_result symbol(type *ret_free_bytes, type *ret_total_bytes)                                \
	{                                                                                                              \
		type free_of_card, total_of_card;                                                                      \
		ll_cu_result status = ll_real()->symbol(ret_free_bytes, ret_total_bytes);                              \
		if (status != LL_CUDA_SUCCESS || ll_charge_passes())                                                   \
			return status;                                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		if (ret_free_bytes && ret_total_bytes) {                                                               \
			free_of_card = *ret_free_bytes;                                                                \
			total_of_card = *ret_total_bytes;                                                              \
		} else if ((status = ll_real()->symbol(&free_of_card, &total_of_card)) != LL_CUDA_SUCCESS) {           \
			return status;                                                                                 \
		}                                                                                                      \
		uint64_t free_bytes = free_of_card, total_bytes = total_of_card;                                       \
		status = limit_info(&free_bytes, &total_bytes);                                                        \
		if (ret_free_bytes)                                                                                    \
			*ret_free_bytes = (type)free_bytes;                                                            \
		if (ret_total_bytes)                                                                                   \
			*ret_total_bytes = (type)total_bytes;                                                          \
		return status;                                                                                         \
	}

INFO_HOOK(cuMemGetInfo, unsigned int)
INFO_HOOK(cuMemGetInfo_v2, size_t)

#define TOTAL_HOOK(symbol, type)                                                                                       \
	LL_HOOK_EXPORT ll_cu_result symbol(type *ret_bytes, ll_cu_device device)                                       \
	{                                                                                                              \
		struct ll_report report;                                                                               \
		ll_cu_result status = ll_real()->symbol(ret_bytes, device);                                            \
		if (status != LL_CUDA_SUCCESS || ll_charge_passes())                                                   \
			return status;                                                                                 \
		LL_REENTRY_SCOPE();                                                                                    \
		if (report_device(device, &report))                                                                    \
			*ret_bytes = (type)least_of(*ret_bytes, report.limit_bytes);                                   \
		return status;                                                                                         \
	}

TOTAL_HOOK(cuDeviceTotalMem, unsigned int)
TOTAL_HOOK(cuDeviceTotalMem_v2, size_t)

/* ---- of NVML ---- */

/*
 * Hooks of NVML's functions for memory and processes. If the program has a memory limit, they report the limit as the
 * card's size and the tenant's processes as the card's processes. Without a limit they change nothing.
 */

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
	*ret_is_limited = report_card(uuid, ret_report);
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
		size_t own_count = report_processes(uuid, own, CLAIMS);                                                \
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

/* The same for the newest list. The list structure contains its parameters. */
static ll_nvml_result own_details(struct ll_nvml_device *device, const char *uuid,
				  struct ll_nvml_process_detail_list *list)
{
	struct ll_port_process own[CLAIMS];
	struct ll_nvml_process_detail_list all = {
	    .version = LL_NVML_PROCESS_DETAIL_LIST_V1,
	    .mode = list->mode,
	    .count = MOST_PROCESSES,
	    .processes = calloc(MOST_PROCESSES, sizeof *all.processes),
	};
	if (!all.processes)
		return LL_NVML_ERROR_MEMORY;
	size_t own_count = report_processes(uuid, own, CLAIMS);
	unsigned kept = 0;
	ll_nvml_result status = ll_real_nvml()->nvmlDeviceGetRunningProcessDetailList(device, &all);
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
