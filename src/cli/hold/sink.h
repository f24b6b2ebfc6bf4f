/*
 * sink.h - the interface of one kind of output of `hold`. cli/hold/output.c makes the sinks and passes the events to
 * them.
 *
 * A sink embeds struct ll_hold_sink as its first field. event and free are mandatory, the others may be NULL.
 */
#ifndef LOADLINE_CLI_HOLD_SINK_H
#define LOADLINE_CLI_HOLD_SINK_H

#include "cli/hold/output.h"

struct ll_hold_sink;

struct ll_hold_sink_ops {
	/* Handles an event of config->cards[slot]. */
	void (*event)(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot);
	/* Does the tasks that are due. Returns the time of the next one. UINT64_MAX: none before the next event. */
	uint64_t (*tick)(struct ll_hold_sink *sink, uint64_t now_ns);
	/* Called before free at a regular end. Only a failure of stdout is an error. */
	int (*finish)(struct ll_hold_sink *sink, struct ll_err *err);
	void (*free)(struct ll_hold_sink *sink);
};

struct ll_hold_sink {
	const struct ll_hold_sink_ops *ops;
	const struct ll_hold_output_config *config;
};

/* Prints log lines, and the summaries at the end unless is_json. has_periodic: also a log line for each card every
 * --log-every. */
int ll_hold_text_new(const struct ll_hold_output_config *config, bool has_periodic, struct ll_hold_sink **ret_sink,
		     struct ll_err *err);

int ll_hold_json_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

/* False if the terminal cannot redraw lines: TERM is dumb, empty or not set. */
bool ll_hold_live_is_possible(void);
int ll_hold_live_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

int ll_hold_record_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

#endif
