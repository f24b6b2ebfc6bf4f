#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/internal.h"
#include "driver/readings.h"

static const char what[] = "processes";

enum { FIRST_CAPACITY = 32, TRIES = 8 };

typedef ll_nvml_result (*query_fn)(struct ll_nvml_device *device, unsigned int *count,
				   struct ll_nvml_process *ret_processes);

static query_fn find_query(const struct ll_nvml *nvml, enum ll_process_kind kind)
{
	switch (kind) {
	case LL_PROCESS_COMPUTE:
		return nvml->nvmlDeviceGetComputeRunningProcesses ? nvml->nvmlDeviceGetComputeRunningProcesses
								  : nvml->nvmlDeviceGetComputeRunningProcesses_v2;
	case LL_PROCESS_GRAPHICS:
		return nvml->nvmlDeviceGetGraphicsRunningProcesses ? nvml->nvmlDeviceGetGraphicsRunningProcesses
								   : nvml->nvmlDeviceGetGraphicsRunningProcesses_v2;
	case LL_PROCESS_MPS_CLIENT:
		return nvml->nvmlDeviceGetMPSComputeRunningProcesses ? nvml->nvmlDeviceGetMPSComputeRunningProcesses
								     : nvml->nvmlDeviceGetMPSComputeRunningProcesses_v2;
	default:
		return NULL;
	}
}

static int grow_list(void **memory, size_t count, size_t size, struct ll_err *err)
{
	void *larger = reallocarray(*memory, count, size);
	if (!larger)
		return ll_err_set(err, -ENOMEM, "list of processes: %s", strerror(ENOMEM));
	*memory = larger;
	return 0;
}

/* Reads until the buffer is large enough, because processes may start meanwhile. */
static int fetch_processes(const struct ll_card *card, query_fn query, struct ll_process_list *list,
			   unsigned *ret_count, struct ll_err *err)
{
	ll_nvml_result status = LL_NVML_ERROR_INSUFFICIENT_SIZE;
	for (int i = 0; i < TRIES && status == LL_NVML_ERROR_INSUFFICIENT_SIZE; i++) {
		size_t wanted = list->scratch_size ? list->scratch_size * 2 : FIRST_CAPACITY;
		if (i || !list->scratch) {
			int rc = grow_list(&list->scratch, wanted, sizeof(struct ll_nvml_process), err);
			if (rc)
				return rc;
			list->scratch_size = wanted;
		}
		*ret_count = (unsigned)list->scratch_size;
		status = query(card->nvml, ret_count, list->scratch);
	}
	if (status == LL_NVML_SUCCESS && *ret_count > list->scratch_size)
		*ret_count = (unsigned)list->scratch_size;
	return ll_card_check(card, status, err, what);
}

static struct ll_process *find_pid(struct ll_process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].pid == pid)
			return &list->items[i];
	}
	return NULL;
}

/* A process in two lists has the same memory in both, so the values are not added. */
static int merge_process(struct ll_process_list *list, enum ll_process_kind kind, const struct ll_nvml_process *raw,
			 struct ll_err *err)
{
	uint64_t bytes = raw->used_bytes == LL_NVML_VALUE_NOT_AVAILABLE ? LL_MEMORY_UNKNOWN : raw->used_bytes;
	struct ll_process *process = find_pid(list, (pid_t)raw->pid);
	if (process) {
		process->kinds |= kind;
		if (process->memory_bytes == LL_MEMORY_UNKNOWN ||
		    (bytes != LL_MEMORY_UNKNOWN && bytes > process->memory_bytes))
			process->memory_bytes = bytes;
		return 0;
	}
	if (list->count == list->capacity) {
		size_t wanted = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
		void *items = list->items;
		int rc = grow_list(&items, wanted, sizeof *list->items, err);
		if (rc)
			return rc;
		list->items = items;
		list->capacity = wanted;
	}
	list->items[list->count++] = (struct ll_process){(pid_t)raw->pid, kind, bytes};
	return 0;
}

static int read_kind(const struct ll_card *card, enum ll_process_kind kind, struct ll_process_list *list,
		     struct ll_err *err)
{
	unsigned count = 0;
	query_fn query = find_query(ll_card_nvml(card), kind);
	if (!query)
		return ll_card_lacks(card, err, what);
	int rc = fetch_processes(card, query, list, &count, err);
	const struct ll_nvml_process *raw = list->scratch;
	for (unsigned i = 0; !rc && i < count; i++)
		rc = merge_process(list, kind, &raw[i], err);
	return rc;
}

int ll_read_processes(const struct ll_card *card, unsigned kinds, struct ll_process_list *list, struct ll_err *err)
{
	static const enum ll_process_kind all[] = {LL_PROCESS_COMPUTE, LL_PROCESS_GRAPHICS, LL_PROCESS_MPS_CLIENT};
	bool has_answer = false;
	int rc = 0;
	list->count = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(kinds & all[i]))
			continue;
		rc = read_kind(card, all[i], list, err);
		/* A card without graphics has no such list, and a driver may lack the list of MPS clients. */
		if (rc && rc != -ENOSYS)
			return rc;
		has_answer |= !rc;
	}
	return has_answer ? 0 : rc;
}

void ll_process_list_fini(struct ll_process_list *list)
{
	free(list->items);
	free(list->scratch);
	*list = (struct ll_process_list){0};
}
