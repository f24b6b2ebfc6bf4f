#include "hold/command/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/common/table.h"
#include "hold/command/words.h"

void *ll_hold_sink_new(const struct ll_hold_sink_ops *ops, const struct ll_hold_output_config *config, size_t bytes,
		       size_t card_bytes)
{
	struct ll_hold_sink *sink = calloc(1, bytes + config->count * card_bytes);
	if (sink)
		*sink = (struct ll_hold_sink){.ops = ops, .config = config};
	return sink;
}

/* ---- record ---- */

/*
 * The record: one CSV row for each sample. level and target are in percent, or in watts with --metric power. One line
 * of awk makes a file for --curve replay:FILE of a record. The targets of card 0:
 *
 *     awk -F, 'NR > 1 && $3 == "0" { print $1 "," $8 }' hold.csv >replay.csv
 *
 * The utilisation of card 0, real work included, cut to the range of a replay (1 to 99):
 *
 *     awk -F, 'NR > 1 && $3 == "0" && $10 != "" { u = $10 < 1 ? 1 : $10 > 99 ? 99 : $10; print $1 "," u }' hold.csv
 */
#define FLUSH_EVERY_NS (LL_NS_PER_S / 2)

static const char header[] = "time_s,wall_time,card,uuid,metric,unit,level,target,own_util_percent,util_percent,"
			     "power_watts,temperature_celsius,state\n";

struct record_sink {
	struct ll_hold_sink sink;
	FILE *file;  /* NULL after a failed write */
	int failure; /* errno of the failed write */
	uint64_t next_flush_ns;
	bool has_unflushed;
	struct ll_strbuf row;
};

/* Adds an empty field if the value is not known (NAN). */
static void add_number(struct ll_strbuf *row, double value)
{
	ll_strbuf_addc(row, ',');
	if (isfinite(value))
		ll_strbuf_addf(row, "%.10g", round(value * 1000) / 1000);
}

static void end_record(struct record_sink *self, int code)
{
	ll_warn("record %s: %s; the recording ends, the hold goes on", self->sink.config->record_path, strerror(code));
	fclose(self->file);
	self->file = NULL;
	self->failure = code;
}

static void flush_record(struct record_sink *self)
{
	if (self->file && fflush(self->file) != 0)
		end_record(self, errno);
}

static void record_event(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot)
{
	struct record_sink *self = (struct record_sink *)sink;
	(void)slot;
	if (!self->file || event->kind != LL_EVENT_SAMPLE)
		return;
	const struct ll_hold_status *status = &event->status;
	enum ll_metric metric = sink->config->hold->metric;
	double scale = ll_metric_scale(metric);
	struct ll_strbuf *row = &self->row;
	ll_strbuf_reset(row);
	ll_strbuf_addf(row, "%.3f,", event->time_s);
	ll_wall_time_add(row, event->wall_ns);
	ll_strbuf_addf(row, ",%s,%s,%s,%s", event->card->label, event->card->uuid, ll_metric_name(metric),
		       ll_hold_unit_word(metric));
	add_number(row, status->level * scale);
	add_number(row, status->target * scale);
	add_number(row, status->own_util * 100);
	add_number(row, status->util * 100);
	add_number(row, status->power_watts);
	add_number(row, status->temperature_c);
	ll_strbuf_addf(row, ",%s\n", ll_hold_state_name(status->state));
	if (row->failed)
		end_record(self, ENOMEM);
	else if (fputs(row->buf, self->file) < 0)
		end_record(self, errno);
	self->has_unflushed = true;
}

static uint64_t record_tick(struct ll_hold_sink *sink, uint64_t now_ns)
{
	struct record_sink *self = (struct record_sink *)sink;
	if (!self->has_unflushed)
		return UINT64_MAX;
	if (now_ns < self->next_flush_ns)
		return self->next_flush_ns;
	self->next_flush_ns = now_ns + FLUSH_EVERY_NS;
	self->has_unflushed = false;
	flush_record(self);
	return UINT64_MAX;
}

static int fail_record(const char *path, int code, struct ll_err *err)
{
	ll_err_set(err, -code, "record %s: %s", path, strerror(code));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

/* A failed record makes the exit status of the command a failure. */
static int record_finish(struct ll_hold_sink *sink, struct ll_err *err)
{
	struct record_sink *self = (struct record_sink *)sink;
	flush_record(self);
	return self->failure ? fail_record(sink->config->record_path, self->failure, err) : 0;
}

static void record_fini(struct ll_hold_sink *sink)
{
	struct record_sink *self = (struct record_sink *)sink;
	flush_record(self);
	if (self->file)
		fclose(self->file);
	ll_strbuf_fini(&self->row);
}

static int new_record(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err)
{
	static const struct ll_hold_sink_ops ops = {
	    .event = record_event,
	    .tick = record_tick,
	    .finish = record_finish,
	    .fini = record_fini,
	};
	struct record_sink *self = ll_hold_sink_new(&ops, config, sizeof *self, 0);
	if (!self)
		return ll_err_set(err, -ENOMEM, "record: out of memory");
	self->row = (struct ll_strbuf)LL_STRBUF_INIT;
	self->file = fopen(config->record_path, "we");
	if (!self->file || fputs(header, self->file) < 0 || fflush(self->file) != 0) {
		int code = errno;
		if (self->file)
			fclose(self->file);
		free(self);
		return fail_record(config->record_path, code, err);
	}
	*ret_sink = &self->sink;
	return 0;
}

/* ---- output ---- */

enum { MAX_SINKS = 4 };

/* Values that a card's last event lacks, because the context is gone by then. */
struct seen {
	uint64_t memory_bytes;
	char payload[16];
};

struct ll_hold_output {
	struct ll_hold_output_config config;
	struct ll_hold_sink *sinks[MAX_SINKS];
	size_t sink_count;
	struct ll_metrics *metrics;
	struct seen seen[]; /* one for each card */
};

/* Adds the sink if rc, the result of the function that made it, is 0. It is then not NULL, which the analyzer cannot
 * know. */
static int add_sink(struct ll_hold_output *output, int rc, struct ll_hold_sink *const *sink)
{
	if (rc == 0 && *sink)
		output->sinks[output->sink_count++] = *sink;
	return rc;
}

/* The log is before the display in the list: the log line about an event is written before the display shows the
 * effect. */
static int add_sinks(struct ll_hold_output *output, struct ll_err *err)
{
	const struct ll_hold_output_config *config = &output->config;
	bool is_live = config->is_live && !config->is_json && ll_hold_live_is_possible();
	bool has_periodic = config->log_every_ns > 0 && !(is_live && isatty(STDERR_FILENO));
	struct ll_hold_sink *sink = NULL;
	int rc = 0;
	if (config->record_path)
		rc = add_sink(output, new_record(config, &sink, err), &sink);
	if (rc == 0 && config->metrics_listen)
		rc = ll_metrics_new(config->metrics_listen, config->hold->metric, config->cards, config->count,
				    &output->metrics, err);
	if (rc == 0)
		rc = add_sink(output, ll_hold_text_new(config, has_periodic, &sink, err), &sink);
	if (rc == 0 && config->is_json)
		rc = add_sink(output, ll_hold_json_new(config, &sink, err), &sink);
	if (rc == 0 && is_live)
		rc = add_sink(output, ll_hold_live_new(config, &sink, err), &sink);
	return rc;
}

int ll_hold_output_new(const struct ll_hold_output_config *config, struct ll_hold_output **ret_output,
		       struct ll_err *err)
{
	struct ll_hold_output *output = calloc(1, sizeof *output + config->count * sizeof output->seen[0]);
	if (!output)
		return ll_err_set(err, -ENOMEM, "hold: out of memory");
	output->config = *config;
	int rc = add_sinks(output, err);
	if (rc < 0) {
		ll_hold_output_free(output);
		return rc;
	}
	*ret_output = output;
	return 0;
}

void ll_hold_output_event(struct ll_hold_output *output, const struct ll_event *event)
{
	size_t slot = 0;
	while (slot < output->config.count && output->config.cards[slot] != event->card)
		slot++;
	if (slot == output->config.count)
		return;
	struct ll_event shown = *event;
	struct ll_hold_status *status = &shown.status;
	struct seen *seen = &output->seen[slot];
	if (status->memory_bytes)
		seen->memory_bytes = status->memory_bytes;
	if (status->payload[0])
		memcpy(seen->payload, status->payload, sizeof seen->payload);
	if (event->kind == LL_EVENT_SUMMARY) {
		status->memory_bytes = seen->memory_bytes;
		memcpy(status->payload, seen->payload, sizeof status->payload);
	}
	for (size_t i = 0; i < output->sink_count; i++)
		output->sinks[i]->ops->event(output->sinks[i], &shown, slot);
	if (output->metrics)
		ll_metrics_event(output->metrics, &shown, slot);
}

uint64_t ll_hold_output_tick(struct ll_hold_output *output, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	for (size_t i = 0; i < output->sink_count; i++) {
		struct ll_hold_sink *sink = output->sinks[i];
		uint64_t sink_ns = sink->ops->tick ? sink->ops->tick(sink, now_ns) : UINT64_MAX;
		next_ns = sink_ns < next_ns ? sink_ns : next_ns;
	}
	return next_ns;
}

/* Ends the sinks from last to first, so that the display is gone before the summaries are printed in its place. */
int ll_hold_output_finish(struct ll_hold_output *output, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = output->sink_count; i-- > 0;) {
		struct ll_hold_sink *sink = output->sinks[i];
		int sink_rc = sink->ops->finish ? sink->ops->finish(sink, rc < 0 ? NULL : err) : 0;
		if (rc == 0)
			rc = sink_rc;
	}
	ll_metrics_free(output->metrics);
	output->metrics = NULL;
	return rc;
}

void ll_hold_output_free(struct ll_hold_output *output)
{
	if (!output)
		return;
	for (size_t i = output->sink_count; i-- > 0;) {
		struct ll_hold_sink *sink = output->sinks[i];
		if (sink->ops->fini)
			sink->ops->fini(sink);
		free(sink);
	}
	ll_metrics_free(output->metrics);
	free(output);
}

unsigned ll_hold_output_port(const struct ll_hold_output *output)
{
	return output->metrics ? ll_metrics_port(output->metrics) : 0;
}
