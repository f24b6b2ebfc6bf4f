#include "probe/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "driver/readings.h"
#include "probe/crew.h"

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
	if (!result->kernels)
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
	ll_samples_fini(&sums->overlap);
	ll_samples_fini(&sums->share);
	ll_samples_fini(&sums->window);
	ll_samples_fini(&sums->lost);
	ll_samples_fini(&sums->slice);
	ll_samples_fini(&sums->switching);
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

static uint64_t used_bytes(const struct ll_card *card)
{
	struct ll_memory memory;
	return ll_read_memory(card, &memory, NULL) == 0 ? memory.used_bytes : 0;
}

static void note_memory(struct measuring *m)
{
	uint64_t now_bytes = used_bytes(m->plan->card);
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
	m->used_before_bytes = used_bytes(m->plan->card);
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
