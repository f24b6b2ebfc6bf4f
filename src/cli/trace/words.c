/* The names of a trace's events. */
#include <string.h>

#include "abi/cupti.h"
#include "cli/trace/run.h"

const char *ll_trace_event_kind(const struct ll_trace_event *event)
{
	static const char *const words[LL_TRACE_KINDS] = {
	    [LL_TRACE_KERNEL] = "kernel", [LL_TRACE_COPY] = "copy",           [LL_TRACE_MEMSET] = "memset",
	    [LL_TRACE_GRAPH] = "graph",   [LL_TRACE_ALLOCATE] = "allocation", [LL_TRACE_FREE] = "free",
	    [LL_TRACE_GATE] = "gate",
	};
	const char *word = words[event->record->head.kind];
	return word ? word : "other";
}

static bool is_on_card(uint8_t kind)
{
	return kind == LL_CUPTI_MEMORY_DEVICE || kind == LL_CUPTI_MEMORY_ARRAY || kind == LL_CUPTI_MEMORY_MANAGED ||
	       kind == LL_CUPTI_MEMORY_DEVICE_STATIC || kind == LL_CUPTI_MEMORY_MANAGED_STATIC;
}

bool ll_trace_is_host_copy(const struct ll_trace_record *record)
{
	return record->head.kind == LL_TRACE_COPY && !(is_on_card(record->from) && is_on_card(record->to));
}

bool ll_trace_is_busy(const struct ll_trace_record *record)
{
	switch (record->head.kind) {
	case LL_TRACE_KERNEL:
	case LL_TRACE_GRAPH:
	case LL_TRACE_MEMSET:
		return true;
	case LL_TRACE_COPY:
		return !ll_trace_is_host_copy(record);
	default:
		return false;
	}
}

/* The names are those of nvprof and later profilers. P: pageable or pinned host memory. */
static const char *copy_name(const struct ll_trace_record *record)
{
	bool is_from_card = is_on_card(record->from), is_to_card = is_on_card(record->to);
	if (is_from_card && is_to_card)
		return "[CUDA memcpy DtoD]";
	if (is_from_card)
		return "[CUDA memcpy DtoH]";
	return is_to_card ? "[CUDA memcpy HtoD]" : "[CUDA memcpy HtoH]";
}

const char *ll_trace_event_name(const struct ll_trace_event *event)
{
	const char *name = ll_trace_file_name(event->file, event->record);
	switch (event->record->head.kind) {
	case LL_TRACE_COPY:
		return copy_name(event->record);
	case LL_TRACE_MEMSET:
		return "[CUDA memset]";
	case LL_TRACE_GRAPH:
		return *name ? name : "[CUDA graph]";
	case LL_TRACE_ALLOCATE:
		return "[CUDA memory allocation]";
	case LL_TRACE_FREE:
		return "[CUDA memory free]";
	case LL_TRACE_GATE:
		return "[loadline gate wait]";
	default:
		return *name ? name : "[unknown]";
	}
}

bool ll_trace_is_communication(const char *name)
{
	static const char *const marks[] = {"nccl",       "nvshmem",   "mscclpp",        "all_reduce", "allreduce",
					    "all_gather", "allgather", "reduce_scatter", "all_to_all", "alltoall"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		if (strstr(name, marks[i]))
			return true;
	}
	return false;
}
