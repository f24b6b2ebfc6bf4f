#include "cli/trace/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cupti.h"
#include "base/err.h"
#include "cli/trace/sums.h"

static void add_to_process(struct ll_trace_process_sum *sum, const struct ll_trace_record *record, uint64_t *held_bytes)
{
	uint64_t ns = record->end_ns - record->start_ns;
	bool is_card = record->to == LL_CUPTI_MEMORY_DEVICE || record->to == LL_CUPTI_MEMORY_MANAGED;
	switch (record->head.kind) {
	case LL_TRACE_KERNEL:
	case LL_TRACE_GRAPH:
		sum->kernels++;
		break;
	case LL_TRACE_MEMSET:
		sum->memsets++;
		break;
	case LL_TRACE_COPY:
		sum->copies++;
		sum->copy_ns += ns;
		if (ll_trace_is_host_copy(record))
			*(is_card ? &sum->to_card_bytes : &sum->from_card_bytes) += record->bytes;
		break;
	case LL_TRACE_GATE:
		sum->gate_waits++;
		sum->gate_ns += ns;
		break;
	case LL_TRACE_ALLOCATE:
		*held_bytes += is_card ? record->bytes : 0;
		sum->peak_bytes = *held_bytes > sum->peak_bytes ? *held_bytes : sum->peak_bytes;
		break;
	case LL_TRACE_FREE:
		*held_bytes -= !is_card ? 0 : record->bytes < *held_bytes ? record->bytes : *held_bytes;
		break;
	default:
		break;
	}
}

static bool sum_process(const struct ll_trace_process *process, struct ll_trace_process_sum *sum)
{
	struct ll_spans busy = {0};
	uint64_t held_bytes = 0;
	sum->process = process;
	for (size_t i = 0; i < process->count; i++) {
		const struct ll_trace_record *record = process->events[i].record;
		add_to_process(sum, record, &held_bytes);
		if (ll_trace_is_busy(record))
			ll_spans_add(&busy, record->start_ns, record->end_ns);
	}
	ll_spans_settle(&busy);
	sum->busy_ns = ll_spans_total_ns(&busy);
	bool is_whole = !busy.failed;
	ll_spans_fini(&busy);
	return is_whole;
}

static void sum_drops(const struct ll_trace_run *run, struct ll_trace_summary *summary)
{
	for (size_t i = 0; i < run->process_count; i++) {
		summary->events += run->processes[i].count;
		summary->dropped_limit += run->processes[i].dropped_limit;
		summary->dropped_cupti += run->processes[i].dropped_cupti;
		summary->dropped_disk += run->processes[i].dropped_disk;
	}
}

int ll_trace_summary_make(const struct ll_trace_run *run, struct ll_trace_summary *ret_summary, struct ll_err *err)
{
	struct ll_trace_summary summary = {0};
	summary.processes = calloc(run->process_count + 1, sizeof *summary.processes);
	summary.cards = calloc(run->card_count + 1, sizeof *summary.cards);
	bool is_whole = summary.processes && summary.cards;
	for (size_t i = 0; is_whole && i < run->process_count; i++)
		is_whole = sum_process(&run->processes[i], &summary.processes[summary.process_count++]);
	for (unsigned i = 0; is_whole && i < run->card_count; i++)
		is_whole = ll_trace_sum_card(run, i, &summary.cards[summary.card_count++]);
	is_whole = is_whole && ll_trace_sum_kernels(run, &summary.kernels, &summary.kernel_count);
	sum_drops(run, &summary);
	if (is_whole) {
		*ret_summary = summary;
		return 0;
	}
	ll_trace_summary_fini(&summary);
	return ll_err_set(err, -ENOMEM, "trace: %s", strerror(ENOMEM));
}

void ll_trace_summary_fini(struct ll_trace_summary *summary)
{
	free(summary->kernels);
	free(summary->processes);
	free(summary->cards);
	memset(summary, 0, sizeof *summary);
}
