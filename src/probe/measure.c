#include "probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "driver/readings.h"

/* ---- cell ---- */

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

/* ---- orders ---- */

static void add_launch(struct ll_probe_order *order, uint32_t party, enum ll_probe_size size, uint32_t rounds,
		       uint64_t length_ns)
{
	order->launches[order->launch_count++] =
	    (struct ll_probe_launch){.party = party, .size = size, .rounds = rounds, .length_ns = length_ns};
}

static enum ll_probe_priority priority_of(bool has_priorities, uint32_t party)
{
	if (!has_priorities)
		return LL_PROBE_PRIORITY_DEFAULT;
	return party == 0 ? LL_PROBE_PRIORITY_HIGH : LL_PROBE_PRIORITY_LOW;
}

static enum ll_probe_stream_kind stream_of(enum ll_probe_parallel parallel)
{
	if (parallel == LL_PROBE_PER_THREAD)
		return LL_PROBE_DEFAULT_STREAM;
	return parallel == LL_PROBE_LEGACY ? LL_PROBE_LEGACY_STREAM : LL_PROBE_OWN_STREAM;
}

void ll_probe_order_cell(const struct ll_probe_cell *cell, const struct ll_probe_load *load,
			 struct ll_probe_order *ret_order)
{
	struct ll_probe_order *order = ret_order;
	bool has_threads = cell->parallel == LL_PROBE_THREADS || cell->parallel == LL_PROBE_PER_THREAD ||
			   cell->parallel == LL_PROBE_LEGACY;
	uint32_t rounds = cell->is_full ? LL_PROBE_ROUNDS : 1;
	memset(order, 0, sizeof *order);
	order->party_count = load->parties;
	for (uint32_t i = 0; i < load->parties; i++) {
		order->parties[i] = (struct ll_probe_party){
		    .worker = cell->parallel == LL_PROBE_PROCESSES ? i : 0,
		    .has_thread = has_threads,
		    .stream = stream_of(cell->parallel),
		    .priority = priority_of(cell->has_priorities, i),
		};
		for (uint32_t k = 0; k < load->kernels; k++)
			add_launch(order, i, cell->is_full ? LL_PROBE_SIZE_FULL : LL_PROBE_SIZE_TINY, rounds,
				   load->length_ns / rounds);
	}
}

uint32_t ll_probe_order_workers(const struct ll_probe_cell *cell, uint32_t parties)
{
	return cell->parallel == LL_PROBE_PROCESSES ? parties : 1;
}

void ll_probe_order_arrival(bool has_priorities, struct ll_probe_order *ret_order)
{
	struct ll_probe_order *order = ret_order;
	memset(order, 0, sizeof *order);
	order->party_count = 2;
	for (uint32_t i = 0; i < 2; i++)
		order->parties[i].priority = priority_of(has_priorities, i);
	add_launch(order, 0, LL_PROBE_SIZE_BLOCK, 1, LL_PROBE_ARRIVAL_BLOCK_NS / 2);
	add_launch(order, 1, LL_PROBE_SIZE_FULL, LL_PROBE_ARRIVAL_ROUNDS, LL_PROBE_ARRIVAL_BLOCK_NS);
	add_launch(order, 0, LL_PROBE_SIZE_BLOCK, 1, LL_PROBE_ARRIVAL_BLOCK_NS / 10);
}

uint64_t ll_probe_arrival_wait_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES])
{
	return kernels[2].start_ns > kernels[0].end_ns ? kernels[2].start_ns - kernels[0].end_ns : 0;
}

uint64_t ll_probe_arrival_round_ns(const struct ll_probe_kernel kernels[LL_PROBE_ARRIVAL_LAUNCHES])
{
	uint64_t round_end_ns = kernels[1].start_ns + LL_PROBE_ARRIVAL_BLOCK_NS;
	return round_end_ns > kernels[0].end_ns ? round_end_ns - kernels[0].end_ns : 0;
}

/* ---- measure ---- */

struct measuring {
	const struct ll_probe_plan *plan;
	const struct ll_probe_host *host;
	struct ll_probe_memory *memories;
	struct ll_probe_crew *crew; /* of the group at hand */
	uint64_t used_before_bytes; /* before its first process */
	uint64_t used_last_bytes;   /* after its newest */
	struct ll_probe_memory memory;
};

void ll_probe_result_fini(struct ll_probe_result *result)
{
	free(result->kernels);
	result->kernels = NULL;
	result->kernel_count = 0;
}

/* ---- one cell ---- */

static void look_at_kernels(struct ll_probe_result *result, const struct ll_probe_kernel *kernels, size_t count)
{
	uint64_t all[LL_PROBE_SMS / 64] = {0};
	result->sms_together = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t step_ns = kernels[i].step_ns;
		if (!result->step_ns || step_ns < result->step_ns)
			result->step_ns = step_ns;
		if (kernels[i].sm_count > result->sm_count)
			result->sm_count = kernels[i].sm_count;
		for (size_t w = 0; w < LL_PROBE_SMS / 64; w++)
			all[w] |= kernels[i].sms[w];
	}
	for (size_t w = 0; w < LL_PROBE_SMS / 64; w++)
		result->sms_together += (uint32_t)__builtin_popcountll(all[w]);
}

static int keep_kernels(struct ll_probe_result *result, const struct ll_probe_kernel *kernels, size_t count,
			struct ll_err *err)
{
	if (!result->kernels && count)
		result->kernels = calloc(count, sizeof *kernels);
	if (!result->kernels)
		return ll_err_set(err, -ENOMEM, "accounts of kernels: %s", strerror(ENOMEM));
	memcpy(result->kernels, kernels, count * sizeof *kernels);
	result->kernel_count = count;
	look_at_kernels(result, kernels, count);
	return 0;
}

struct sums {
	struct ll_samples overlap, share, window, lost, slice, switching;
};

static void add_run(struct sums *sums, const struct ll_verdict *verdict, struct ll_probe_result *result)
{
	ll_samples_add(&sums->overlap, verdict->overlap);
	ll_samples_add(&sums->share, verdict->share);
	ll_samples_add(&sums->window, (double)verdict->window_ns);
	if (verdict->window_ns)
		ll_samples_add(&sums->lost, 1 - (double)verdict->busy_ns / (double)verdict->window_ns);
	if (verdict->slice_ns.count)
		ll_samples_add(&sums->slice, verdict->slice_ns.median);
	if (verdict->switch_ns.count)
		ll_samples_add(&sums->switching, verdict->switch_ns.median);
	result->idle_ns = verdict->idle_ns > result->idle_ns ? verdict->idle_ns : result->idle_ns;
}

static void finish_sums(struct sums *sums, struct ll_probe_result *result)
{
	result->overlap = ll_spread_of(&sums->overlap);
	result->share = ll_spread_of(&sums->share);
	result->window_ns = ll_spread_of(&sums->window);
	result->lost = ll_spread_of(&sums->lost);
	result->slice_ns = ll_spread_of(&sums->slice);
	result->switch_ns = ll_spread_of(&sums->switching);
}

static int run_cell(struct measuring *m, struct ll_probe_result *result, struct ll_err *err)
{
	struct ll_probe_order order;
	struct sums sums = {0};
	LL_SCOPE_FREE struct ll_verdict *verdicts = calloc(m->plan->runs, sizeof *verdicts);
	int rc = 0;
	if (!verdicts)
		return ll_err_set(err, -ENOMEM, "verdicts: %s", strerror(ENOMEM));
	ll_probe_order_cell(&result->cell, &result->load, &order);
	for (size_t i = 0; rc == 0 && i < m->plan->runs; i++) {
		const struct ll_probe_kernel *kernels = NULL;
		rc = ll_probe_crew_run(m->crew, &order, &kernels, err);
		if (rc == 0 && ll_verdict_make(kernels, order.launch_count, order.party_count, &verdicts[i]) < 0)
			rc = ll_err_set(err, -ENOMEM, "verdict: %s", strerror(ENOMEM));
		if (rc == 0)
			rc = keep_kernels(result, kernels, order.launch_count, err);
		if (rc == 0)
			add_run(&sums, &verdicts[i], result);
	}
	finish_sums(&sums, result);
	if (rc < 0)
		return rc;
	result->runs = m->plan->runs;
	result->card_sms = ll_probe_crew_sms(m->crew);
	result->word = ll_verdicts_word(verdicts, result->runs, &result->agreeing);
	return 0;
}

static void refuse_cell(struct ll_probe_result *result, const char *why)
{
	result->word = LL_PROBE_REFUSED;
	result->runs = result->agreeing = 1;
	snprintf(result->why, sizeof result->why, "%.*s", (int)sizeof result->why - 1, why);
}

/* ---- a group: cells that share their processes ---- */

uint64_t ll_probe_used_bytes(const struct ll_card *card)
{
	struct ll_memory memory;
	return ll_read_memory(card, &memory, NULL) == 0 ? memory.used_bytes : 0;
}

static void note_memory(struct measuring *m)
{
	uint64_t now_bytes = ll_probe_used_bytes(m->plan->card);
	size_t count = ll_probe_crew_count(m->crew);
	if (count == 1 && now_bytes > m->used_before_bytes)
		m->memory.first_bytes = now_bytes - m->used_before_bytes;
	if (count == 2 && now_bytes > m->used_last_bytes) {
		m->memory.each_bytes = now_bytes - m->used_last_bytes;
		m->memory.is_known = true;
	}
	m->used_last_bytes = now_bytes;
}

/* Starts as many processes as the cell needs. A refused process counts too. */
static int add_workers(struct measuring *m, uint32_t workers, struct ll_err *err)
{
	int rc = 0;
	while (rc == 0 && ll_probe_crew_count(m->crew) < workers && !ll_probe_crew_refusal(m->crew, workers)) {
		rc = ll_probe_crew_add(m->crew, err);
		if (rc == 0 && !ll_probe_crew_refusal(m->crew, workers))
			note_memory(m);
	}
	return rc;
}

static int measure_cell(struct measuring *m, struct ll_probe_result *result, struct ll_err *err)
{
	uint32_t workers = ll_probe_order_workers(&result->cell, result->load.parties);
	int rc = add_workers(m, workers, err);
	if (rc < 0)
		return rc;
	const char *why = ll_probe_crew_refusal(m->crew, workers);
	if (!why)
		return run_cell(m, result, err);
	refuse_cell(result, why);
	return 0;
}

static void keep_memory(const struct measuring *m)
{
	if (!m->memory.is_known)
		return;
	for (size_t i = 0; i < LL_PROBE_CHOICES; i++) {
		struct ll_probe_memory *memory = &m->memories[i];
		if (memory->is_known && ll_probe_under_same(memory->under, m->memory.under))
			return; /* the first figures count: connections make no difference to them */
		if (!memory->is_known) {
			*memory = m->memory;
			return;
		}
	}
}

static size_t group_length(const struct ll_probe_plan *plan, size_t from)
{
	size_t to = from;
	while (to < plan->count && plan->cells[to].connections == plan->cells[from].connections &&
	       ll_probe_under_same(plan->cells[to].under, plan->cells[from].under))
		to++;
	return to - from;
}

static int skip_cells(const struct measuring *m, struct ll_probe_result *results, size_t count, const char *why,
		      struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		snprintf(results[i].why, sizeof results[i].why, "%.*s", (int)sizeof results[i].why - 1, why);
		rc = m->host->tell(m->host->user, &results[i], err);
	}
	return rc;
}

static int measure_group(struct measuring *m, struct ll_probe_result *results, size_t count, struct ll_err *err)
{
	struct ll_probe_crew_config config = {.card = m->plan->card, .signal_fd = m->host->signal_fd};
	struct ll_err why = {0};
	/* Before what is arranged takes memory, too. */
	m->used_before_bytes = ll_probe_used_bytes(m->plan->card);
	int rc = m->host->arrange(m->host->user, results[0].cell.under, results[0].cell.connections,
				  &config.environment, &why);
	if (rc == -EOPNOTSUPP) {
		return skip_cells(m, results, count, why.text, err);
	}
	if (rc < 0) {
		if (err)
			*err = why;
		return rc;
	}
	m->memory = (struct ll_probe_memory){.under = results[0].cell.under};
	rc = ll_probe_crew_open(&config, &m->crew, err);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		rc = measure_cell(m, &results[i], err);
		results[i].is_skipped = rc < 0;
		if (rc == 0)
			rc = m->host->tell(m->host->user, &results[i], err);
	}
	ll_probe_crew_close(m->crew);
	m->crew = NULL;
	keep_memory(m);
	return rc;
}

int ll_probe_measure(const struct ll_probe_plan *plan, const struct ll_probe_host *host,
		     struct ll_probe_result *results, struct ll_probe_memory *memories, struct ll_err *err)
{
	struct measuring m = {.plan = plan, .host = host, .memories = memories};
	int rc = 0;
	for (size_t i = 0; i < plan->count; i++)
		results[i] = (struct ll_probe_result){.cell = plan->cells[i], .load = plan->load, .is_skipped = true};
	for (size_t from = 0; rc == 0 && from < plan->count;) {
		size_t count = group_length(plan, from);
		rc = measure_group(&m, &results[from], count, err);
		from += count;
	}
	return rc;
}
