#include "exporter/text.h"

#include <math.h>

#include "serve/prometheus.h"

#define NS 1e-9

void ll_exporter_add_one(struct ll_strbuf *text, const char *name, const char *type, const char *help, double value)
{
	ll_prometheus_head(text, name, type, help);
	ll_prometheus_sample(text, name, "", value);
}

static void add_gauge(struct ll_strbuf *text, const char *name, const char *help, double value)
{
	ll_exporter_add_one(text, name, "gauge", help, value);
}

static void add_counter(struct ll_strbuf *text, const char *name, const char *help, double value)
{
	ll_exporter_add_one(text, name, "counter", help, value);
}

static void add_build(struct ll_strbuf *text, const struct ll_message_welcome *welcome)
{
	LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
	ll_prometheus_label(&labels, "version", welcome->version_text);
	ll_prometheus_head(text, "loadline_build_info", "gauge", "1; the labels name the running build.");
	ll_prometheus_sample(text, "loadline_build_info", labels.buf, 1);
}

static void add_daemon(struct ll_strbuf *text, const struct ll_figures *figures)
{
	const struct ll_message_welcome *welcome = &figures->welcome;
	const struct ll_message_metrics_end *end = &figures->sums.end;
	uint64_t silent_ns = figures->sensed.end.silent_ns;
	add_build(text, welcome);
	add_gauge(text, "loadline_uptime_seconds", "Time since the start of loadlined.", (double)welcome->age_ns * NS);
	add_gauge(text, "loadline_jobs", "Jobs that loadlined knows, of all users.", welcome->jobs);
	add_gauge(text, "loadline_connections", "Connections of programs to loadlined.", welcome->connections);
	add_counter(text, "loadline_bad_messages_total",
		    "Connections that loadlined closed because of malformed messages.", (double)welcome->bad_messages);
	add_gauge(text, "loadline_configuration_refused",
		  "1 while the files on the disk have faults, and an earlier configuration is in force.",
		  welcome->policy_refused_s ? 1 : 0);
	add_gauge(text, "loadline_keeper_up", "1 if loadline-keeper serves loadlined.",
		  welcome->keeper == LL_KEEPER_PRESENT);
	add_gauge(text, "loadline_sensor_up",
		  "1 if the sensor has reported the cards within 15 s. Without it there are no samples of cards.",
		  silent_ns < LL_SENSED_FRESH_NS);
	if (silent_ns != UINT64_MAX)
		add_gauge(text, "loadline_sensor_silent_seconds", "Time since the last message of the sensor.",
			  (double)silent_ns * NS);
	add_gauge(text, "loadline_ungoverned_processes",
		  "Processes on the cards that belong to no job and are not on the allow list.", end->ungoverned);
}

static void add_accounts(struct ll_strbuf *text, const struct ll_message_metrics_end *end)
{
	if (end->accounts == LL_METRICS_ACCOUNTS_NONE)
		return;
	add_gauge(text, "loadline_accounts_up", "1 if the accounts can be written; 0 if the last write failed.",
		  end->accounts == LL_METRICS_ACCOUNTS_GOOD);
	add_gauge(text, "loadline_accounts_rows_unwritten", "Rows of the accounts that are in memory alone.",
		  (double)end->rows);
	add_counter(text, "loadline_accounts_rows_lost_total",
		    "Rows of the accounts that were lost because they could not be written for long.",
		    (double)end->lost_rows);
}

static void add_queue(struct ll_strbuf *text, const struct ll_metrics_sums *sums)
{
	uint64_t waiting = 0, oldest_s = 0;
	add_gauge(text, "loadline_queue_up",
		  "1 if jobs get their places by the queue; 0 without groups of cards or without a sensor.",
		  sums->end.has_queue != 0);
	if (!sums->end.has_queue)
		return;
	for (size_t i = 0; i < sums->tenant_count; i++) {
		const struct ll_message_metrics_tenant *tenant = &sums->tenants[i];
		waiting += tenant->waiting;
		oldest_s = tenant->oldest_wait_s > oldest_s ? tenant->oldest_wait_s : oldest_s;
	}
	add_gauge(text, "loadline_queue_jobs", "Jobs that wait in the queue.", (double)waiting);
	add_gauge(text, "loadline_queue_oldest_wait_seconds", "How long the first of the waiting jobs has waited.",
		  (double)oldest_s);
}

static void add_self(struct ll_strbuf *text, const struct ll_figures *figures, const struct ll_exporter_self *self)
{
	add_gauge(text, "loadline_up", "1 if the system's loadlined replies, 0 if it does not.", figures->is_up);
	add_gauge(text, "loadline_exporter_reply_seconds", "How long the replies of loadlined took for this text.",
		  (double)figures->asked_ns * NS);
	add_counter(text, "loadline_exporter_texts_total", "Texts of metrics that the exporter made since its start.",
		    (double)self->scrapes);
	add_counter(text, "loadline_exporter_failures_total", "Of these texts, those without a reply of loadlined.",
		    (double)self->failures);
}

void ll_exporter_text(struct ll_strbuf *text, const struct ll_figures *figures,
		      const struct ll_exporter_history *history, const struct ll_exporter_self *self)
{
	add_self(text, figures, self);
	if (!figures->is_up)
		return;
	add_daemon(text, figures);
	add_accounts(text, &figures->sums.end);
	add_queue(text, &figures->sums);
	ll_exporter_add_cards(text, figures, history);
	ll_exporter_add_tenants(text, figures);
	ll_exporter_add_jobs(text, figures);
}
