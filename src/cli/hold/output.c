#include "cli/hold/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/hold/metrics.h"
#include "cli/hold/sink.h"

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
	struct seen *seen; /* one for each card */
};

/* Adds the sink if rc, the result of the function that made it, is 0. */
static int add_sink(struct ll_hold_output *output, int rc, struct ll_hold_sink *const *sink)
{
	if (rc == 0)
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
		rc = add_sink(output, ll_hold_record_new(config, &sink, err), &sink);
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
	struct ll_hold_output *output = calloc(1, sizeof *output);
	struct seen *seen = calloc(config->count ? config->count : 1, sizeof *seen);
	if (!output || !seen) {
		free(output);
		free(seen);
		return ll_err_set(err, -ENOMEM, "hold: out of memory");
	}
	output->config = *config;
	output->seen = seen;
	int rc = add_sinks(output, err);
	if (rc < 0) {
		ll_hold_output_free(output);
		return rc;
	}
	*ret_output = output;
	return 0;
}

static void keep_seen(struct seen *seen, const struct ll_hold_status *status)
{
	if (status->memory_bytes)
		seen->memory_bytes = status->memory_bytes;
	if (status->payload[0])
		memcpy(seen->payload, status->payload, sizeof seen->payload);
}

static void hand_round(struct ll_hold_output *output, const struct ll_event *event, size_t slot)
{
	for (size_t i = 0; i < output->sink_count; i++)
		output->sinks[i]->ops->event(output->sinks[i], event, slot);
	if (output->metrics)
		ll_metrics_event(output->metrics, event, slot);
}

void ll_hold_output_event(struct ll_hold_output *output, const struct ll_event *event)
{
	size_t slot = 0;
	while (slot < output->config.count && output->config.cards[slot] != event->card)
		slot++;
	if (slot == output->config.count)
		return;
	struct seen *seen = &output->seen[slot];
	keep_seen(seen, &event->status);
	if (event->kind != LL_EVENT_SUMMARY) {
		hand_round(output, event, slot);
		return;
	}
	struct ll_event summary = *event;
	summary.status.memory_bytes = seen->memory_bytes;
	memcpy(summary.status.payload, seen->payload, sizeof seen->payload);
	hand_round(output, &summary, slot);
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
	for (size_t i = output->sink_count; i-- > 0;)
		output->sinks[i]->ops->free(output->sinks[i]);
	ll_metrics_free(output->metrics);
	free(output->seen);
	free(output);
}

unsigned ll_hold_output_port(const struct ll_hold_output *output)
{
	return output->metrics ? ll_metrics_port(output->metrics) : 0;
}
