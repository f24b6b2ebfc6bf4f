#include <math.h>

#include "exporter/text.h"
#include "serve/prometheus.h"

#define PERMILLE 1e-3

static double or_nan(uint64_t limit)
{
	return limit == UINT64_MAX ? NAN : (double)limit;
}

/* ---- use ---- */

#define OF_TENANT(name, expression)                                                                                    \
	static double name(const void *data)                                                                           \
	{                                                                                                              \
		const struct ll_message_metrics_tenant *row = data;                                                    \
		return expression;                                                                                     \
	}

OF_TENANT(granted, row->granted_s)
OF_TENANT(used, row->used_s)
OF_TENANT(idle_held, row->idle_held_s)
OF_TENANT(memory_time, row->memory_byte_s)
OF_TENANT(running, row->running)
OF_TENANT(memory, (double)row->memory_bytes)
OF_TENANT(waiting, row->waiting)
OF_TENANT(oldest_wait, (double)row->oldest_wait_s)

static const struct ll_prometheus_family accounts[] = {
    {"loadline_tenant_gpu_granted_seconds_total", "counter",
     "Time for which jobs of the tenant could use a card, times their share of compute. Grows each 9 s.", granted},
    {"loadline_tenant_gpu_used_seconds_total", "counter",
     "Time for which cards ran kernels of the tenant's jobs. Grows each 9 s.", used},
    {"loadline_tenant_gpu_idle_held_seconds_total", "counter",
     "Time for which jobs of the tenant held a card and had no work queued or running. Grows each 9 s.", idle_held},
    {"loadline_tenant_memory_byte_seconds_total", "counter",
     "Device memory that was charged to the tenant's jobs, times the time. Grows each 9 s.", memory_time},
};

static const struct ll_prometheus_family now[] = {
    {"loadline_tenant_jobs_running", "gauge", "Jobs of the tenant that loadlined knows.", running},
    {"loadline_tenant_memory_used_bytes", "gauge", "Device memory that is charged to the tenant's jobs.", memory},
};

static const struct ll_prometheus_family queue[] = {
    {"loadline_tenant_jobs_waiting", "gauge", "Jobs of the tenant that wait in the queue.", waiting},
    {"loadline_tenant_oldest_wait_seconds", "gauge", "How long the first of them has waited.", oldest_wait},
};

/* Jobs of no configured tenant have a word that is no name of a tenant. */
static void label_tenant(struct ll_strbuf *labels, const void *data)
{
	const struct ll_message_metrics_tenant *row = data;
	ll_prometheus_label(labels, "tenant", row->name[0] ? row->name : "(none)");
}

static void add_use(struct ll_strbuf *text, const struct ll_metrics_sums *sums)
{
	struct ll_prometheus_rows rows = {sums->tenants, sums->tenant_count, sizeof *sums->tenants, label_tenant};
	bool has_accounts =
	    sums->end.accounts == LL_METRICS_ACCOUNTS_GOOD || sums->end.accounts == LL_METRICS_ACCOUNTS_FAILING;
	if (has_accounts)
		ll_prometheus_families(text, accounts, sizeof accounts / sizeof *accounts, &rows);
	ll_prometheus_families(text, now, sizeof now / sizeof *now, &rows);
	if (sums->end.has_queue)
		ll_prometheus_families(text, queue, sizeof queue / sizeof *queue, &rows);
}

/* ---- the configuration ---- */

#define OF_PART(name, expression)                                                                                      \
	static double name(const void *data)                                                                           \
	{                                                                                                              \
		const struct ll_message_policy_part *row = data;                                                       \
		return expression;                                                                                     \
	}

OF_PART(guaranteed_cards, or_nan(row->guaranteed_cards))
OF_PART(guaranteed_memory, or_nan(row->guaranteed_memory_bytes))
OF_PART(guaranteed_compute, or_nan(row->guaranteed_compute_permille) * PERMILLE)
OF_PART(limit_cards, or_nan(row->limit_cards))
OF_PART(limit_memory, or_nan(row->limit_memory_bytes))
OF_PART(limit_compute, or_nan(row->limit_compute_permille) * PERMILLE)
OF_PART(asked_cards, row->is_known && row->gives_cards ? (double)row->used_cards : NAN)
OF_PART(asked_memory, row->is_known && !row->gives_cards ? (double)row->used_memory_bytes : NAN)
OF_PART(asked_compute, row->is_known && !row->gives_cards ? (double)row->used_compute_permille * PERMILLE : NAN)

static const struct ll_prometheus_family parts[] = {
    {"loadline_tenant_guaranteed_cards", "gauge", "Whole cards of the group that are guaranteed to the tenant.",
     guaranteed_cards},
    {"loadline_tenant_guaranteed_memory_bytes", "gauge", "Memory of the group that is guaranteed to the tenant.",
     guaranteed_memory},
    {"loadline_tenant_guaranteed_compute_ratio", "gauge",
     "Compute of the group that is guaranteed to the tenant; 1 is a card.", guaranteed_compute},
    {"loadline_tenant_limit_cards", "gauge", "Whole cards of the group that the tenant may have.", limit_cards},
    {"loadline_tenant_limit_memory_bytes", "gauge", "Memory of the group that the tenant may have.", limit_memory},
    {"loadline_tenant_limit_compute_ratio", "gauge", "Compute of the group that the tenant may have; 1 is a card.",
     limit_compute},
    {"loadline_tenant_requested_cards", "gauge", "Whole cards of the group that the tenant's jobs have.", asked_cards},
    {"loadline_tenant_requested_memory_bytes", "gauge", "Memory of the group that the tenant's jobs asked for.",
     asked_memory},
    {"loadline_tenant_requested_compute_ratio", "gauge",
     "Compute of the group that the tenant's jobs asked for; 1 is a card.", asked_compute},
};

static void label_part(struct ll_strbuf *labels, const void *data)
{
	const struct ll_message_policy_part *row = data;
	ll_prometheus_label(labels, "tenant", row->tenant);
	ll_prometheus_label(labels, "group", row->group);
}

void ll_exporter_add_tenants(struct ll_strbuf *text, const struct ll_figures *figures)
{
	const struct ll_metrics_sums *sums = &figures->sums;
	add_use(text, sums);
	ll_prometheus_families(
	    text, parts, sizeof parts / sizeof *parts,
	    &(struct ll_prometheus_rows){sums->parts, sums->part_count, sizeof *sums->parts, label_part});
}
