#include "probe/cell.h"

#include <stdio.h>

struct list {
	struct ll_probe_cell *cells;
	size_t count, capacity;
};

static void add_cell(struct list *list, struct ll_probe_cell cell)
{
	if (list->cells && list->count < list->capacity)
		list->cells[list->count] = cell;
	list->count++;
}

static void add_grids(struct list *list, const struct ll_probe_choice *choice, struct ll_probe_cell cell)
{
	for (int is_full = 0; is_full < 2; is_full++) {
		if (!(is_full ? choice->full : choice->tiny))
			continue;
		cell.is_full = is_full != 0;
		cell.has_priorities = false;
		if (choice->equal)
			add_cell(list, cell);
		cell.has_priorities = true;
		bool has_own_streams = cell.parallel != LL_PROBE_PER_THREAD && cell.parallel != LL_PROBE_LEGACY;
		if (choice->different && has_own_streams)
			add_cell(list, cell);
	}
}

size_t ll_probe_cells(const struct ll_probe_choice *choice, struct ll_probe_cell *cells, size_t capacity)
{
	struct list list = {.cells = cells, .capacity = capacity};
	for (size_t u = 0; u < choice->under_count; u++) {
		for (size_t c = 0; c < choice->connections_count; c++) {
			for (int p = 0; p < LL_PROBE_PARALLELS; p++) {
				struct ll_probe_cell cell = {
				    .parallel = (enum ll_probe_parallel)p,
				    .under = choice->unders[u],
				    .connections = choice->connections[c],
				};
				if (choice->parallel[p])
					add_grids(&list, choice, cell);
			}
		}
	}
	return list.count;
}

bool ll_probe_under_same(struct ll_probe_under a, struct ll_probe_under b)
{
	return a.manner == b.manner && a.percent == b.percent;
}

const char *ll_probe_parallel_text(enum ll_probe_parallel parallel)
{
	static const char *const words[LL_PROBE_PARALLELS] = {"streams", "threads", "per-thread", "legacy",
							      "processes"};
	return words[parallel];
}

const char *ll_probe_under_text(struct ll_probe_under under, char text[LL_PROBE_UNDER_SIZE])
{
	static const char *const words[] = {"default", "mps", "exclusive"};
	if (under.manner == LL_PROBE_MPS && under.percent)
		snprintf(text, LL_PROBE_UNDER_SIZE, "mps:%u%%", under.percent % 1000);
	else
		snprintf(text, LL_PROBE_UNDER_SIZE, "%s", words[under.manner]);
	return text;
}
