#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/scope.h"
#include "cli/common/json_line.h"
#include "cli/trace/summary.h"

enum { PERCENT_DECIMALS = 3, SECONDS_DECIMALS = 9 };

static json_t *make_seconds(uint64_t ns)
{
	return ll_json_real((double)ns / (double)LL_NS_PER_S, SECONDS_DECIMALS);
}

static json_t *make_percent(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? ll_json_real(100 * (double)part_ns / (double)whole_ns, PERCENT_DECIMALS) : json_null();
}

static const char *source_word(const struct ll_trace_header *header)
{
	static const char *const words[] = {"none", "cupti", "events", "gate"};
	return header && header->source < sizeof words / sizeof *words ? words[header->source] : "none";
}

static int print_process(const struct ll_trace_process_sum *sum, struct ll_err *err)
{
	const struct ll_trace_process *process = sum->process;
	uint64_t dropped = process->dropped_limit + process->dropped_cupti + process->dropped_disk;
	return ll_json_line(
	    json_pack("{s:s, s:i, s:o, s:s, s:s?, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "event",
		      "process", "pid", (int)process->pid, "command", ll_json_text(process->command), "by",
		      source_word(process->device), "cupti_refusal", process->refusal, "kernels",
		      (json_int_t)sum->kernels, "copies", (json_int_t)sum->copies, "memsets", (json_int_t)sum->memsets,
		      "gate_waits", (json_int_t)sum->gate_waits, "busy_seconds", make_seconds(sum->busy_ns),
		      "copy_seconds", make_seconds(sum->copy_ns), "gate_seconds", make_seconds(sum->gate_ns),
		      "to_card_bytes", (json_int_t)sum->to_card_bytes, "from_card_bytes",
		      (json_int_t)sum->from_card_bytes, "peak_memory_bytes", (json_int_t)sum->peak_bytes, "events",
		      (json_int_t)process->count, "dropped_events", (json_int_t)dropped),
	    err);
}

static int print_kernel(const struct ll_trace_kernel_sum *sum, struct ll_err *err)
{
	return ll_json_line(json_pack("{s:s, s:o, s:I, s:i, s:o, s:o, s:o, s:o}", "event", "kernel", "name",
				      ll_json_text(sum->name), "calls", (json_int_t)sum->calls, "processes",
				      (int)sum->processes, "total_seconds", make_seconds(sum->total_ns), "mean_seconds",
				      make_seconds(sum->total_ns / sum->calls), "min_seconds",
				      make_seconds(sum->least_ns), "max_seconds", make_seconds(sum->most_ns)),
			    err);
}

static int print_card(const struct ll_trace_card_sum *sum, struct ll_err *err)
{
	const struct ll_idle_split *split = &sum->split;
	uint64_t window_ns = split->window_ns;
	const char *cause = ll_trace_main_cause(split);
	return ll_json_line(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:i, s:o, s:o}",
				      "event", "card", "uuid", sum->uuid, "window_seconds", make_seconds(window_ns),
				      "busy_percent", make_percent(split->busy_ns, window_ns), "communication_percent",
				      make_percent(split->communication_ns, window_ns), "idle_percent",
				      make_percent(window_ns - split->busy_ns, window_ns), "host_compute_percent",
				      make_percent(split->host_ns, window_ns), "io_wait_percent",
				      make_percent(split->io_ns, window_ns), "copies_percent",
				      make_percent(split->copies_ns, window_ns), "gate_wait_percent",
				      make_percent(split->gate_ns, window_ns), "waiting_percent",
				      make_percent(split->waiting_ns, window_ns), "main_idle_cause", cause, "processes",
				      (int)sum->processes, "overlap_seconds", make_seconds(sum->overlap_ns),
				      "kernel_sum_seconds", make_seconds(sum->kernel_sum_ns)),
			    err);
}

int ll_trace_summary_print_json(const struct ll_trace_summary *summary, size_t top, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < summary->card_count; i++)
		rc = print_card(&summary->cards[i], err);
	for (size_t i = 0; !rc && i < summary->process_count; i++)
		rc = print_process(&summary->processes[i], err);
	for (size_t i = 0; !rc && i < summary->kernel_count && i < top; i++)
		rc = print_kernel(&summary->kernels[i], err);
	if (rc)
		return rc;
	return ll_json_line(json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:i}", "event", "summary",
				      "exit_status", summary->status, "processes", (int)summary->process_count,
				      "kernels", (int)summary->kernel_count, "events", (json_int_t)summary->events,
				      "dropped_over_limit", (json_int_t)summary->dropped_limit, "dropped_by_cupti",
				      (json_int_t)summary->dropped_cupti, "dropped_disk_full",
				      (json_int_t)summary->dropped_disk, "still_running", (int)summary->still_running),
			    err);
}
