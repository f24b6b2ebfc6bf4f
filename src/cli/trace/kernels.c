#include <stdlib.h>
#include <string.h>

#include "cli/trace/sums.h"

enum { FIRST_PLACES = 1024 };

/* Open addressing over the sums, never more than half full. */
struct table {
	struct ll_trace_kernel_sum *items;
	size_t count, room;
	uint32_t *places; /* number of the item + 1; 0: free */
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

static bool grow(struct table *table)
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

static bool add(struct table *table, const char *name, uint64_t ns, size_t process)
{
	if (!grow(table))
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

bool ll_trace_sum_kernels(const struct ll_trace_run *run, struct ll_trace_kernel_sum **ret_kernels, size_t *ret_count)
{
	struct table table = {0};
	bool is_whole = true;
	for (size_t i = 0; is_whole && i < run->process_count; i++) {
		const struct ll_trace_process *process = &run->processes[i];
		for (size_t j = 0; is_whole && j < process->count; j++) {
			const struct ll_trace_record *record = process->events[j].record;
			if (record->head.kind == LL_TRACE_KERNEL || record->head.kind == LL_TRACE_GRAPH)
				is_whole = add(&table, ll_trace_event_name(&process->events[j]),
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
