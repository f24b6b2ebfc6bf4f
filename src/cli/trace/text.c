#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "cli/trace/summary.h"

enum { NAME_WIDTH = 60, COMMAND_WIDTH = 40 };

static double to_seconds(uint64_t ns)
{
	return (double)ns / (double)LL_NS_PER_S;
}

static double to_percent(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? 100 * (double)part_ns / (double)whole_ns : 0;
}

const char *ll_trace_main_cause(const struct ll_idle_split *split)
{
	const struct {
		uint64_t ns;
		const char *word;
	} causes[] = {{split->host_ns, "host compute"},
		      {split->io_ns, "I/O wait"},
		      {split->copies_ns, "copies"},
		      {split->gate_ns, "gate wait"},
		      {split->waiting_ns, "waiting"}};
	size_t best = 0;
	for (size_t i = 1; i < sizeof causes / sizeof *causes; i++)
		best = causes[i].ns > causes[best].ns ? i : best;
	return causes[best].ns ? causes[best].word : NULL;
}

static void add_card(struct ll_strbuf *text, const struct ll_trace_card_sum *card)
{
	const struct ll_idle_split *split = &card->split;
	uint64_t window_ns = split->window_ns, idle_ns = window_ns - split->busy_ns;
	ll_strbuf_addf(text, "\ncard %s, %.3f s from the first use of CUDA to the end\n",
		       *card->uuid ? card->uuid : "(not told)", to_seconds(window_ns));
	ll_strbuf_addf(text, "  busy           %5.1f %%", to_percent(split->busy_ns, window_ns));
	if (split->communication_ns)
		ll_strbuf_addf(text, "   of that %.1f %% nothing but communication kernels",
			       to_percent(split->communication_ns, split->busy_ns));
	ll_strbuf_addf(text, "\n  idle           %5.1f %%", to_percent(idle_ns, window_ns));
	const char *cause = ll_trace_main_cause(split);
	ll_strbuf_addf(text, "%s%s\n", cause ? "   mostly: " : "", cause ? cause : "");
	const struct {
		const char *word;
		uint64_t ns;
	} rows[] = {{"host compute", split->host_ns},
		    {"I/O wait", split->io_ns},
		    {"copies", split->copies_ns},
		    {"gate wait", split->gate_ns},
		    {"waiting", split->waiting_ns}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		ll_strbuf_addf(text, "    %-12s %5.1f %%  %10.3f s\n", rows[i].word, to_percent(rows[i].ns, window_ns),
			       to_seconds(rows[i].ns));
	if (card->processes > 1)
		ll_strbuf_addf(
		    text,
		    "  overlap        %5.1f %%   of the busy time work of two or more of %u processes was under way\n",
		    to_percent(card->overlap_ns, split->busy_ns), card->processes);
}

/* Adds the command without the program's path, which would fill the column. Line breaks, which scripts given by -c
 * have, become blanks. */
static void add_command(struct ll_strbuf *text, const char *command)
{
	size_t first = strcspn(command, " ");
	const char *name = command + first;
	while (name > command && name[-1] != '/')
		name--;
	LL_SCOPE_FREE char *line = strdup(name);
	for (char *c = line; c && *c; c++)
		*c = *c == '\n' || *c == '\t' || *c == '\r' ? ' ' : *c;
	if (line)
		ll_utf8_clean(line);
	ll_utf8_add(text, line ? line : "", COMMAND_WIDTH);
	ll_strbuf_addc(text, '\n');
}

static void add_processes(struct ll_strbuf *text, const struct ll_trace_summary *summary)
{
	ll_strbuf_addf(text, "\n%8s  %8s  %7s  %7s  %10s  %10s  %10s  %9s  %s\n", "PID", "KERNELS", "COPIES", "MEMSETS",
		       "BUSY s", "COPIES s", "GATE s", "PEAK MiB", "COMMAND");
	for (size_t i = 0; i < summary->process_count; i++) {
		const struct ll_trace_process_sum *sum = &summary->processes[i];
		ll_strbuf_addf(
		    text, "%8d  %8" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "  %10.3f  %10.3f  %10.3f  %9" PRIu64 "  ",
		    (int)sum->process->pid, sum->kernels, sum->copies, sum->memsets, to_seconds(sum->busy_ns),
		    to_seconds(sum->copy_ns), to_seconds(sum->gate_ns), sum->peak_bytes >> 20);
		add_command(text, sum->process->command);
	}
}

static void add_kernels(struct ll_strbuf *text, const struct ll_trace_summary *summary, size_t top)
{
	uint64_t all_ns = 0;
	for (size_t i = 0; i < summary->kernel_count; i++)
		all_ns += summary->kernels[i].total_ns;
	if (!summary->kernel_count || !top)
		return;
	ll_strbuf_addf(text, "\n%7s  %10s  %8s  %9s  %9s  %9s  %s\n", "SHARE", "TOTAL s", "CALLS", "MEAN us", "MIN us",
		       "MAX us", "KERNEL");
	for (size_t i = 0; i < summary->kernel_count && i < top; i++) {
		const struct ll_trace_kernel_sum *sum = &summary->kernels[i];
		ll_strbuf_addf(text, "%5.1f %%  %10.3f  %8" PRIu64 "  %9.1f  %9.1f  %9.1f  %.*s\n",
			       to_percent(sum->total_ns, all_ns), to_seconds(sum->total_ns), sum->calls,
			       (double)sum->total_ns / (double)sum->calls / (double)LL_NS_PER_US,
			       (double)sum->least_ns / (double)LL_NS_PER_US,
			       (double)sum->most_ns / (double)LL_NS_PER_US, NAME_WIDTH, sum->name);
	}
	if (summary->kernel_count > top)
		ll_strbuf_addf(text, "%7s  and %zu more\n", "", summary->kernel_count - top);
}

static void add_notes(struct ll_strbuf *text, const struct ll_trace_summary *summary)
{
	for (size_t i = 0; i < summary->process_count; i++) {
		const struct ll_trace_process *process = summary->processes[i].process;
		if (!process->refusal)
			continue;
		bool has_times = process->device->source == LL_TRACE_SOURCE_EVENTS;
		ll_strbuf_addf(text, "\nnote: process %d: %s; %s\n", (int)process->pid, process->refusal,
			       has_times ? "it was traced by events" : "it has no device times, try --by events");
	}
	if (summary->dropped_limit)
		ll_strbuf_addf(text, "\nnote: %" PRIu64 " events over --max-events are not in this trace\n",
			       summary->dropped_limit);
	if (summary->dropped_cupti)
		ll_strbuf_addf(text, "\nnote: %" PRIu64 " events were dropped by CUPTI\n", summary->dropped_cupti);
	if (summary->dropped_disk)
		ll_strbuf_addf(text, "\nnote: %" PRIu64 " events could not be written: the disk of TMPDIR is full\n",
			       summary->dropped_disk);
	if (summary->still_running)
		ll_strbuf_addf(text, "\nnote: %zu process%s: events after the command's end are not in it\n",
			       summary->still_running, summary->still_running == 1 ? " still runs" : "es still run");
}

void ll_trace_summary_add_text(struct ll_strbuf *text, const struct ll_trace_summary *summary, size_t top)
{
	if (!summary->process_count)
		ll_strbuf_adds(text, "no process of the command used CUDA\n");
	for (size_t i = 0; i < summary->card_count; i++)
		add_card(text, &summary->cards[i]);
	if (summary->process_count)
		add_processes(text, summary);
	add_kernels(text, summary, top);
	add_notes(text, summary);
}
