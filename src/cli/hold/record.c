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
#include "cli/hold/sink.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/hold/words.h"

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

/* "2026-01-31T12:00:00.250Z" */
static void add_wall_time(struct ll_strbuf *row, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / LL_NS_PER_S);
	struct tm tm;
	char text[32];
	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	ll_strbuf_addf(row, "%s.%03uZ", text, (unsigned)(wall_ns % LL_NS_PER_S / LL_NS_PER_MS));
}

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
	double scale = ll_hold_scale(metric);
	struct ll_strbuf *row = &self->row;
	ll_strbuf_reset(row);
	ll_strbuf_addf(row, "%.3f,", event->time_s);
	add_wall_time(row, event->wall_ns);
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

static void record_free(struct ll_hold_sink *sink)
{
	struct record_sink *self = (struct record_sink *)sink;
	flush_record(self);
	if (self->file)
		fclose(self->file);
	ll_strbuf_fini(&self->row);
	free(self);
}

int ll_hold_record_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err)
{
	static const struct ll_hold_sink_ops ops = {
	    .event = record_event,
	    .tick = record_tick,
	    .finish = record_finish,
	    .free = record_free,
	};
	struct record_sink *self = calloc(1, sizeof *self);
	if (!self)
		return ll_err_set(err, -ENOMEM, "record: out of memory");
	self->sink = (struct ll_hold_sink){.ops = &ops, .config = config};
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
