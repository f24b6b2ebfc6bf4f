#include "cli/trace/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cupti.h"
#include "base/err.h"

/* ---- by kernel ---- */

enum { FIRST_PLACES = 1024 };

/* A hash table over the sums, with open addressing, at most half full. */
struct table {
	struct ll_trace_kernel_sum *items;
	size_t count, room;
	uint32_t *places; /* index of the sum + 1; 0: free */
	size_t place_count;
};

static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static uint32_t *find_place(const struct table *table, const char *name)
{
	size_t i = hash_of(name) & (table->place_count - 1);
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
	if (ll_trace_is_host_copy(record))
		ll_spans_add(&sets->copies, start_ns, end_ns);
	if (!ll_trace_is_busy(record))
		return;
	bool communicates =
	    record->head.kind == LL_TRACE_KERNEL && ll_trace_is_communication(ll_trace_event_name(event));
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
			if (process->events[j].card == card && ll_trace_is_busy(record))
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
		is_whole = sum_card(run, i, &summary.cards[summary.card_count++]);
	is_whole = is_whole && sum_kernels(run, &summary.kernels, &summary.kernel_count);
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
