#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "exporter/text.h"
#include "serve/prometheus.h"

#define NS 1e-9
#define PERMILLE 1e-3
enum { NUMBER_SIZE = 24 };

/* A job on a card. */
struct job_row {
	const struct ll_message_job_row *job;
	const struct ll_message_card_row *card;
	const struct ll_message_sense_card *sensed; /* NULL: the sensor does not know the card */
};

static double or_nan(uint64_t limit)
{
	return limit ? (double)limit : NAN;
}

/* Of "NAMESPACE/POD/CONTAINER", the labels of dcgm-exporter. */
static void add_pod(struct ll_strbuf *labels, const char *pod)
{
	static const char *const names[] = {"namespace", "pod", "container"};
	char part[LL_POD_SIZE];
	for (size_t i = 0; *pod && i < sizeof names / sizeof *names; i++) {
		size_t length = strcspn(pod, "/");
		snprintf(part, sizeof part, "%.*s", (int)length, pod);
		ll_prometheus_label(labels, names[i], part);
		pod += length + (pod[length] == '/');
	}
}

/* The name of a job without a tenant may be made of its command, and is left out. */
static void add_labels(struct ll_strbuf *labels, const void *data)
{
	const struct job_row *row = data;
	char number[NUMBER_SIZE];
	snprintf(number, sizeof number, "%" PRIu64, row->job->number);
	ll_prometheus_label(labels, "job_number", number);
	ll_prometheus_label(labels, "tenant", row->job->tenant[0] ? row->job->tenant : "(none)");
	snprintf(number, sizeof number, "%" PRIu32, row->job->job.uid);
	ll_prometheus_label(labels, "uid", number);
	if (row->sensed) {
		snprintf(number, sizeof number, "%u", row->sensed->index);
		ll_prometheus_label(labels, "gpu", number);
	}
	ll_prometheus_label(labels, "UUID", row->card->uuid);
	add_pod(labels, row->job->pod);
}

static const struct ll_message_sense_card *find_sensed(const struct ll_sensed *sensed, const char *uuid)
{
	for (size_t i = 0; i < sensed->card_count; i++) {
		if (strcmp(sensed->cards[i].uuid, uuid) == 0)
			return &sensed->cards[i];
	}
	return NULL;
}

#define FAMILY(name, type, help, value) LL_PROMETHEUS_FAMILY(text, &table, struct job_row, name, type, help, value)

/* loadlined lists jobs in the order of their numbers. */
void ll_exporter_add_jobs(struct ll_strbuf *text, const struct ll_figures *figures)
{
	const struct ll_list *list = &figures->list;
	size_t count = 0, omitted = 0;
	double omitted_bytes = 0;
	LL_SCOPE_FREE struct job_row *rows = calloc(LL_EXPORTER_JOBS, sizeof *rows);
	if (!rows) {
		text->failed = true;
		return;
	}
	for (size_t i = 0; i < list->card_count; i++) {
		const struct ll_message_card_row *card = &list->cards[i];
		const struct ll_message_job_row *job = ll_list_job(list, card->job_number);
		if (job && count < LL_EXPORTER_JOBS) {
			rows[count++] = (struct job_row){job, card, find_sensed(&figures->sensed, card->uuid)};
		} else {
			omitted++;
			omitted_bytes += (double)card->used_bytes;
		}
	}
	const struct ll_prometheus_rows table = {rows, count, add_labels};
	FAMILY("loadline_job_memory_used_bytes", "gauge", "Memory of the card that is charged to the job.",
	       (double)row->card->used_bytes);
	FAMILY("loadline_job_memory_limit_bytes", "gauge", "Memory of the card that the job may have.",
	       or_nan(row->job->job.limits.memory_bytes));
	FAMILY("loadline_job_compute_limit_ratio", "gauge", "Part of the card's time that the job may have.",
	       or_nan(row->job->job.limits.compute_permille) * PERMILLE);
	FAMILY("loadline_job_gpu_seconds_total", "counter",
	       "Time for which the card ran kernels of the job, as its programs report it. Time that it shared with "
	       "other jobs counts for each of them.",
	       (double)row->card->gpu_time_ns * NS);
	if (figures->sums.end.hides_others)
		return;
	ll_exporter_add_one(
	    text, "loadline_jobs_omitted", "gauge",
	    "Jobs, once for each of their cards, that have no series of their own: there are 256 at most.",
	    (double)omitted);
	ll_exporter_add_one(text, "loadline_jobs_omitted_memory_used_bytes", "gauge",
			    "Memory that is charged to these jobs together.", omitted_bytes);
}
