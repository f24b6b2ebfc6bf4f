#include "trace/command/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cupti.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "cli/common/table.h"

/* ---- words ---- */

/* The names of a trace's events. */
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

/* A copy between host and card, which runs on a copy engine beside kernels. */
static bool is_host_copy(const struct ll_trace_record *record)
{
	return record->head.kind == LL_TRACE_COPY && !(is_on_card(record->from) && is_on_card(record->to));
}

/* Whether the record makes the card busy: a kernel, a graph, a memset, or a copy within the card. */
static bool is_busy(const struct ll_trace_record *record)
{
	uint16_t kind = record->head.kind;
	return kind == LL_TRACE_KERNEL || kind == LL_TRACE_GRAPH || kind == LL_TRACE_MEMSET ||
	       (kind == LL_TRACE_COPY && !is_host_copy(record));
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

/* Whether a kernel of this name belongs to a communication library such as NCCL: it moves data between cards or
 * processes, and waits for others. */
static bool is_communication(const char *name)
{
	static const char *const marks[] = {"nccl",       "nvshmem",   "mscclpp",        "all_reduce", "allreduce",
					    "all_gather", "allgather", "reduce_scatter", "all_to_all", "alltoall"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		if (strstr(name, marks[i]))
			return true;
	}
	return false;
}

/* ---- summary ---- */

/* ---- by kernel ---- */

enum { FIRST_PLACES = 1024 };

/* A hash table over the sums, with open addressing, at most half full. */
struct table {
	struct ll_trace_kernel_sum *items;
	size_t count, room;
	uint32_t *places; /* index of the sum + 1; 0: free */
	size_t place_count;
};

static uint32_t *find_place(const struct table *table, const char *name)
{
	size_t i = ll_text_hash(name) & (table->place_count - 1);
	while (table->places[i] && strcmp(table->items[table->places[i] - 1].name, name) != 0)
		i = (i + 1) & (table->place_count - 1);
	return &table->places[i];
}

static bool grow_table(struct table *table)
{
	if (2 * (table->count + 1) <= table->place_count)
		return true;
	size_t count = table->place_count ? 2 * table->place_count : FIRST_PLACES;
	uint32_t *places = calloc(count, sizeof *places);
	struct ll_trace_kernel_sum *items = realloc(table->items, count / 2 * sizeof *items);
	if (items)
		table->items = items;
	if (!places || !items) {
		free(places);
		return false;
	}
	free(table->places);
	table->places = places;
	table->place_count = count;
	for (size_t i = 0; i < table->count; i++)
		*find_place(table, table->items[i].name) = (uint32_t)i + 1;
	return true;
}

static bool add_kernel(struct table *table, const char *name, uint64_t ns, size_t process)
{
	if (!grow_table(table))
		return false;
	uint32_t *place = find_place(table, name);
	if (!*place) {
		table->items[table->count++] =
		    (struct ll_trace_kernel_sum){.name = name, .least_ns = ns, .last_process = SIZE_MAX};
		*place = (uint32_t)table->count;
	}
	struct ll_trace_kernel_sum *sum = &table->items[*place - 1];
	sum->calls++;
	sum->total_ns += ns;
	sum->least_ns = ns < sum->least_ns ? ns : sum->least_ns;
	sum->most_ns = ns > sum->most_ns ? ns : sum->most_ns;
	sum->processes += sum->last_process != process;
	sum->last_process = process;
	return true;
}

static int by_total(const void *a, const void *b)
{
	const struct ll_trace_kernel_sum *first = a, *second = b;
	if (first->total_ns != second->total_ns)
		return first->total_ns > second->total_ns ? -1 : 1;
	return strcmp(first->name, second->name);
}

/* Returns false if memory ran out. *ret_kernels is one allocation for free(3). */
static bool sum_kernels(const struct ll_trace_run *run, struct ll_trace_kernel_sum **ret_kernels, size_t *ret_count)
{
	struct table table = {0};
	bool is_whole = true;
	for (size_t i = 0; is_whole && i < run->process_count; i++) {
		const struct ll_trace_process *process = &run->processes[i];
		for (size_t j = 0; is_whole && j < process->count; j++) {
			const struct ll_trace_record *record = process->events[j].record;
			if (record->head.kind == LL_TRACE_KERNEL || record->head.kind == LL_TRACE_GRAPH)
				is_whole = add_kernel(&table, ll_trace_event_name(&process->events[j]),
						      record->end_ns - record->start_ns, i);
		}
	}
	free(table.places);
	if (!is_whole) {
		free(table.items);
		return false;
	}
	if (table.count)
		qsort(table.items, table.count, sizeof *table.items, by_total);
	*ret_kernels = table.items;
	*ret_count = table.count;
	return true;
}

/* ---- by card ---- */

/* The spans of one card's events by which its idle time is split. */
struct sets {
	struct ll_spans kernels, communication, computation, copies, gate;
};

static void add_event(struct sets *sets, const struct ll_trace_event *event, struct ll_trace_card_sum *sum)
{
	const struct ll_trace_record *record = event->record;
	uint64_t start_ns = record->start_ns, end_ns = record->end_ns;
	if (record->head.kind == LL_TRACE_GATE)
		ll_spans_add(&sets->gate, start_ns, end_ns);
	if (is_host_copy(record))
		ll_spans_add(&sets->copies, start_ns, end_ns);
	if (!is_busy(record))
		return;
	bool communicates = record->head.kind == LL_TRACE_KERNEL && is_communication(ll_trace_event_name(event));
	ll_spans_add(&sets->kernels, start_ns, end_ns);
	ll_spans_add(communicates ? &sets->communication : &sets->computation, start_ns, end_ns);
	sum->kernel_sum_ns += end_ns - start_ns;
}

static void for_all_sets(struct sets *sets, void (*fn)(struct ll_spans *spans))
{
	fn(&sets->kernels);
	fn(&sets->communication);
	fn(&sets->computation);
	fn(&sets->copies);
	fn(&sets->gate);
}

/* Finds for how long work of two or more processes was under way. */
static bool find_overlap(const struct ll_trace_run *run, unsigned card, struct ll_trace_card_sum *sum)
{
	bool failed = true;
	struct ll_spans *busy = calloc(run->process_count + 1, sizeof *busy);
	const struct ll_spans **sets = calloc(run->process_count + 1, sizeof *sets);
	for (size_t i = 0; busy && sets && i < run->process_count; i++) {
		const struct ll_trace_process *process = &run->processes[i];
		for (size_t j = 0; j < process->count; j++) {
			const struct ll_trace_record *record = process->events[j].record;
			if (process->events[j].card == card && is_busy(record))
				ll_spans_add(&busy[i], record->start_ns, record->end_ns);
		}
		ll_spans_settle(&busy[i]);
		sets[i] = &busy[i];
		sum->processes += busy[i].count > 0;
	}
	if (busy && sets)
		sum->overlap_ns = ll_spans_shared_ns(sets, run->process_count, &failed);
	for (size_t i = 0; busy && i < run->process_count; i++)
		ll_spans_fini(&busy[i]);
	free(busy);
	free(sets);
	return !failed;
}

/* Returns false if memory ran out. */
static bool sum_card(const struct ll_trace_run *run, unsigned card, struct ll_trace_card_sum *ret_sum)
{
	struct ll_trace_card_sum sum = {.uuid = run->cards[card]};
	struct sets sets = {0};
	for (size_t i = 0; i < run->process_count; i++) {
		const struct ll_trace_process *process = &run->processes[i];
		for (size_t j = 0; j < process->count; j++) {
			if (process->events[j].card == card)
				add_event(&sets, &process->events[j], &sum);
		}
	}
	for_all_sets(&sets, ll_spans_settle);
	struct ll_idle_view view = {
	    .start_ns = run->start_ns,
	    .end_ns = run->end_ns,
	    .kernels = &sets.kernels,
	    .communication = &sets.communication,
	    .computation = &sets.computation,
	    .copies = &sets.copies,
	    .gate = &sets.gate,
	    .host = &run->host,
	    .io = &run->io,
	};
	bool is_whole = ll_idle_make_split(&view, &sum.split) && find_overlap(run, card, &sum);
	for_all_sets(&sets, ll_spans_fini);
	if (is_whole)
		*ret_sum = sum;
	return is_whole;
}

/* ---- the summary ---- */

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
		if (is_host_copy(record))
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
		if (is_busy(record))
			ll_spans_add(&busy, record->start_ns, record->end_ns);
	}
	ll_spans_settle(&busy);
	sum->busy_ns = ll_spans_total_ns(&busy);
	bool is_whole = !busy.failed;
	ll_spans_fini(&busy);
	return is_whole;
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
		is_whole = sum_card(run, i, &summary.cards[summary.card_count++]);
	is_whole = is_whole && sum_kernels(run, &summary.kernels, &summary.kernel_count);
	for (size_t i = 0; i < run->process_count; i++) {
		summary.events += run->processes[i].count;
		summary.dropped_limit += run->processes[i].dropped_limit;
		summary.dropped_cupti += run->processes[i].dropped_cupti;
		summary.dropped_disk += run->processes[i].dropped_disk;
	}
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

/* ---- text ---- */

enum { NAME_WIDTH = 60, COMMAND_WIDTH = 40 };

static double to_seconds(uint64_t ns)
{
	return (double)ns / (double)LL_NS_PER_S;
}

static double to_percent(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? 100 * (double)part_ns / (double)whole_ns : 0;
}

enum { CAUSES = 5 };

struct cause {
	const char *word;
	uint64_t ns;
};

/* The causes of a card's idle time. */
static void list_causes(const struct ll_idle_split *split, struct cause ret_causes[CAUSES])
{
	ret_causes[0] = (struct cause){"host compute", split->host_ns};
	ret_causes[1] = (struct cause){"I/O wait", split->io_ns};
	ret_causes[2] = (struct cause){"copies", split->copies_ns};
	ret_causes[3] = (struct cause){"gate wait", split->gate_ns};
	ret_causes[4] = (struct cause){"waiting", split->waiting_ns};
}

const char *ll_trace_main_cause(const struct ll_idle_split *split)
{
	struct cause causes[CAUSES];
	size_t best = 0;
	list_causes(split, causes);
	for (size_t i = 1; i < CAUSES; i++)
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
	struct cause causes[CAUSES];
	list_causes(split, causes);
	for (size_t i = 0; i < CAUSES; i++)
		ll_strbuf_addf(text, "    %-12s %5.1f %%  %10.3f s\n", causes[i].word,
			       to_percent(causes[i].ns, window_ns), to_seconds(causes[i].ns));
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

/* ---- json ---- */

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
