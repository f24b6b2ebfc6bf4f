#include <math.h>

#include "exporter/text.h"
#include "serve/prometheus.h"

#define PERMILLE 1e-3

static double or_nan(uint64_t limit)
{
	return limit == UINT64_MAX ? NAN : (double)limit;
}

/* ---- use ---- */

/* Jobs of no configured tenant have a word that is no name of a tenant. */
static void label_tenant(struct ll_strbuf *labels, const void *data)
{
	const struct ll_message_metrics_tenant *row = data;
	ll_prometheus_label(labels, "tenant", row->name[0] ? row->name : "(none)");
}

#define OF_TENANT(name, type, help, value)                                                                             \
	LL_PROMETHEUS_FAMILY(text, &rows, struct ll_message_metrics_tenant, name, type, help, value)

static void add_use(struct ll_strbuf *text, const struct ll_metrics_sums *sums)
{
	struct ll_prometheus_rows rows = {sums->tenants, sums->tenant_count, label_tenant};
	bool has_accounts =
	    sums->end.accounts == LL_METRICS_ACCOUNTS_GOOD || sums->end.accounts == LL_METRICS_ACCOUNTS_FAILING;
	if (has_accounts) {
		OF_TENANT(
		    "loadline_tenant_gpu_granted_seconds_total", "counter",
		    "Time for which jobs of the tenant could use a card, times their share of compute. Grows each 9 s.",
		    row->granted_s);
		OF_TENANT("loadline_tenant_gpu_used_seconds_total", "counter",
			  "Time for which cards ran kernels of the tenant's jobs. Grows each 9 s.", row->used_s);
		OF_TENANT(
		    "loadline_tenant_gpu_idle_held_seconds_total", "counter",
		    "Time for which jobs of the tenant held a card and had no work queued or running. Grows each 9 s.",
		    row->idle_held_s);
		OF_TENANT("loadline_tenant_memory_byte_seconds_total", "counter",
			  "Device memory that was charged to the tenant's jobs, times the time. Grows each 9 s.",
			  row->memory_byte_s);
	}
	OF_TENANT("loadline_tenant_jobs_running", "gauge", "Jobs of the tenant that loadlined knows.", row->running);
	OF_TENANT("loadline_tenant_memory_used_bytes", "gauge", "Device memory that is charged to the tenant's jobs.",
		  (double)row->memory_bytes);
	if (sums->end.has_queue) {
		OF_TENANT("loadline_tenant_jobs_waiting", "gauge", "Jobs of the tenant that wait in the queue.",
			  row->waiting);
		OF_TENANT("loadline_tenant_oldest_wait_seconds", "gauge", "How long the first of them has waited.",
			  (double)row->oldest_wait_s);
		OF_TENANT("loadline_tenant_jobs_borrowing", "gauge",
			  "Jobs of the tenant that run with what others do not use.", row->borrowing);
		OF_TENANT("loadline_tenant_jobs_recalled", "gauge",
			  "Jobs of the tenant that sleep, or will, because what they borrowed is needed.",
			  row->recalled);
		OF_TENANT("loadline_tenant_memory_borrowed_bytes", "gauge",
			  "Device memory that is charged to the tenant's jobs that borrow.",
			  (double)row->borrowed_bytes);
	}
}

/* ---- the configuration ---- */

static void label_part(struct ll_strbuf *labels, const void *data)
{
	const struct ll_message_policy_part *row = data;
	ll_prometheus_label(labels, "tenant", row->tenant);
	ll_prometheus_label(labels, "group", row->group);
}

#define OF_PART(name, type, help, value)                                                                               \
	LL_PROMETHEUS_FAMILY(text, &rows, struct ll_message_policy_part, name, type, help, value)

void ll_exporter_add_tenants(struct ll_strbuf *text, const struct ll_figures *figures)
{
	const struct ll_metrics_sums *sums = &figures->sums;
	add_use(text, sums);
	const struct ll_prometheus_rows rows = {sums->parts, sums->part_count, label_part};
	OF_PART("loadline_tenant_guaranteed_cards", "gauge",
		"Whole cards of the group that are guaranteed to the tenant.", or_nan(row->guaranteed_cards));
	OF_PART("loadline_tenant_guaranteed_memory_bytes", "gauge",
		"Memory of the group that is guaranteed to the tenant.", or_nan(row->guaranteed_memory_bytes));
	OF_PART("loadline_tenant_guaranteed_compute_ratio", "gauge",
		"Compute of the group that is guaranteed to the tenant; 1 is a card.",
		or_nan(row->guaranteed_compute_permille) * PERMILLE);
	OF_PART("loadline_tenant_limit_cards", "gauge", "Whole cards of the group that the tenant may have.",
		or_nan(row->limit_cards));
	OF_PART("loadline_tenant_limit_memory_bytes", "gauge", "Memory of the group that the tenant may have.",
		or_nan(row->limit_memory_bytes));
	OF_PART("loadline_tenant_limit_compute_ratio", "gauge",
		"Compute of the group that the tenant may have; 1 is a card.",
		or_nan(row->limit_compute_permille) * PERMILLE);
	OF_PART("loadline_tenant_requested_cards", "gauge", "Whole cards of the group that the tenant's jobs have.",
		row->is_known && row->gives_cards ? (double)row->used_cards : NAN);
	OF_PART("loadline_tenant_requested_memory_bytes", "gauge",
		"Memory of the group that the tenant's jobs asked for.",
		row->is_known && !row->gives_cards ? (double)row->used_memory_bytes : NAN);
	OF_PART("loadline_tenant_requested_compute_ratio", "gauge",
		"Compute of the group that the tenant's jobs asked for; 1 is a card.",
		row->is_known && !row->gives_cards ? (double)row->used_compute_permille * PERMILLE : NAN);
}
