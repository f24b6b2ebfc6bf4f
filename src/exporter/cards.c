#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "exporter/text.h"
#include "serve/prometheus.h"

#define NS 1e-9
#define MIB 1048576.0
enum { INDEX_SIZE = 16, INDICES = 64 };

struct card_row {
	const struct ll_message_sense_card *card;
	double util; /* 0 to 1; NAN: unknown */
	bool is_watched, has_queue, is_out_of_use;
};

static bool has_memory(const struct ll_message_sense_card *card)
{
	return card->memory_bytes && !(card->flags & LL_SENSE_IS_LOST);
}

/* The driver's own part of the memory is neither free nor used. */
static uint64_t free_bytes(const struct ll_message_sense_card *card)
{
	uint64_t bytes = card->usable_bytes ? card->usable_bytes : card->memory_bytes;
	return bytes > card->used_bytes ? bytes - card->used_bytes : 0;
}

static void add_labels(struct ll_strbuf *labels, const void *data)
{
	const struct ll_message_sense_card *card = ((const struct card_row *)data)->card;
	char number[INDEX_SIZE];
	snprintf(number, sizeof number, "%u", card->index);
	ll_prometheus_label(labels, "gpu", number);
	ll_prometheus_label(labels, "UUID", card->uuid);
	if (card->slice < 0)
		return;
	snprintf(number, sizeof number, "%d", card->slice);
	ll_prometheus_label(labels, "GPU_I_ID", number);
}

static void add_dcgm_labels(struct ll_strbuf *labels, const void *data)
{
	const struct ll_message_sense_card *card = ((const struct card_row *)data)->card;
	add_labels(labels, data);
	ll_prometheus_label(labels, "pci_bus_id", card->bus_id);
	ll_prometheus_label(labels, "modelName", card->name);
}

/* ---- drained cards ---- */

struct drained_row {
	const struct ll_message_sense_drained *drained;
	const struct ll_message_sense_card *card; /* NULL: the sensor does not report it */
};

/* A fault's words are those of loadlined, such as "Xid 79". */
static void add_drained_labels(struct ll_strbuf *labels, const void *data)
{
	const struct drained_row *row = data;
	char number[INDEX_SIZE];
	snprintf(number, sizeof number, "%u", row->drained->index);
	ll_prometheus_label(labels, "gpu", number);
	if (row->card)
		ll_prometheus_label(labels, "UUID", row->card->uuid);
	ll_prometheus_label(labels, "reason", row->drained->reason[0] ? row->drained->reason : "operator");
}

static const struct ll_message_sense_card *find_card(const struct ll_sensed *sensed, uint32_t index)
{
	for (size_t i = 0; i < sensed->card_count; i++) {
		if (sensed->cards[i].index == index && sensed->cards[i].slice < 0)
			return &sensed->cards[i];
	}
	return NULL;
}

/* A drain may begin later. */
static void add_drained(struct ll_strbuf *text, const struct ll_figures *figures)
{
	const struct ll_sensed *sensed = &figures->sensed;
	struct drained_row rows[INDICES];
	size_t count = 0;
	for (size_t i = 0; i < sensed->drained_count && count < INDICES; i++) {
		const struct ll_message_sense_drained *drained = &sensed->drained[i];
		if (drained->index < INDICES && (figures->sums.end.out_of_use >> drained->index & 1))
			rows[count++] = (struct drained_row){drained, find_card(sensed, drained->index)};
	}
	const struct ll_prometheus_rows table = {rows, count, add_drained_labels};
	LL_PROMETHEUS_FAMILY(
	    text, &table, struct drained_row, "loadline_card_drained", "gauge",
	    "1 for each card that is drained now. reason: operator, or the fault for which loadlined drained it.", 1);
}

/* ---- all cards ---- */

double ll_exporter_util(const struct ll_exporter_history *history, const struct ll_message_sense_card *card)
{
	for (size_t i = 0; card->watched_ns && i < history->count; i++) {
		if (strcmp(history->readings[i].uuid, card->uuid) == 0)
			return history->readings[i].util;
	}
	return NAN;
}

#define FAMILY(name, type, help, value) LL_PROMETHEUS_FAMILY(text, &table, struct card_row, name, type, help, value)

void ll_exporter_add_cards(struct ll_strbuf *text, const struct ll_figures *figures,
			   const struct ll_exporter_history *history)
{
	const struct ll_sensed *sensed = &figures->sensed;
	const struct ll_message_metrics_end *end = &figures->sums.end;
	if (sensed->end.silent_ns >= LL_SENSED_FRESH_NS || !sensed->card_count)
		return;
	LL_SCOPE_FREE struct card_row *rows = calloc(sensed->card_count, sizeof *rows);
	if (!rows) {
		text->failed = true;
		return;
	}
	for (size_t i = 0; i < sensed->card_count; i++) {
		const struct ll_message_sense_card *card = &sensed->cards[i];
		rows[i].card = card;
		rows[i].util = ll_exporter_util(history, card);
		rows[i].is_watched = card->watched_ns;
		rows[i].has_queue = end->has_queue && card->index < INDICES;
		rows[i].is_out_of_use = rows[i].has_queue && (end->out_of_use >> card->index & 1);
	}
	struct ll_prometheus_rows table = {rows, sensed->card_count, add_dcgm_labels};
	FAMILY("DCGM_FI_DEV_GPU_UTIL", "gauge",
	       "GPU utilization (in %), as NVML has it: the mean since the report of the sensor that an earlier scrape "
	       "saw.",
	       row->util * 100);
	FAMILY("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).",
	       has_memory(row->card) ? (double)row->card->used_bytes / MIB : NAN);
	FAMILY("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).",
	       has_memory(row->card) ? (double)free_bytes(row->card) / MIB : NAN);
	FAMILY("DCGM_FI_DEV_XID_ERRORS", "gauge",
	       "Value of the last XID error encountered; 0: none since loadlined's start.",
	       row->card->slice < 0 ? (double)row->card->xid : NAN);
	table.label = add_labels;
	FAMILY("loadline_card_xid_errors_total", "counter", "Faults (Xid) of the card since loadlined's start.",
	       row->card->slice < 0 ? (double)row->card->xids : NAN);
	FAMILY("loadline_card_memory_bytes", "gauge", "Memory of the card.",
	       row->card->memory_bytes ? (double)row->card->memory_bytes : NAN);
	FAMILY("loadline_card_lost", "gauge", "1 while the card does not answer the driver.",
	       (row->card->flags & LL_SENSE_IS_LOST) ? 1 : 0);
	FAMILY("loadline_card_out_of_use", "gauge", "1 while no job may start on the card: drained, or in maintenance.",
	       row->has_queue ? row->is_out_of_use : NAN);
	FAMILY("loadline_card_busy_seconds_total", "counter",
	       "Time in which the card had work, since the sensor's start.",
	       row->is_watched ? (double)row->card->busy_ns * NS : NAN);
	FAMILY("loadline_card_idle_seconds", "gauge", "How long the card has had no work of anybody; 0: it has some.",
	       row->is_watched ? (double)row->card->idle_ns * NS : NAN);
	add_drained(text, figures);
}
