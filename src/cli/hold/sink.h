/*
 * sink.h - one kind of output of `hold` (see cli/hold/output.h, which makes them and hands the events round).
 *
 * A sink embeds struct ll_hold_sink as its first field. event and free are mandatory, the others may be NULL.
 */
#ifndef LOADLINE_CLI_HOLD_SINK_H
#define LOADLINE_CLI_HOLD_SINK_H

#include "cli/hold/output.h"

struct ll_hold_sink;

struct ll_hold_sink_ops {
	/* slot is the event's card in config->cards. */
	void (*event)(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot);
	/* Does what is due; returns when something will be, UINT64_MAX: not without an event. */
	uint64_t (*tick)(struct ll_hold_sink *sink, uint64_t now_ns);
	/* Before free, at a regular end; a failure is of stdout alone. */
	int (*finish)(struct ll_hold_sink *sink, struct ll_err *err);
	void (*free)(struct ll_hold_sink *sink);
};

struct ll_hold_sink {
	const struct ll_hold_sink_ops *ops;
	const struct ll_hold_output_config *config;
};

/* Log lines, and the summaries at the end unless is_json. has_periodic: also a line per --log-every. */
int ll_hold_text_new(const struct ll_hold_output_config *config, bool has_periodic, struct ll_hold_sink **ret_sink,
		     struct ll_err *err);

int ll_hold_json_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

/* False where a redrawn display would only make a mess: TERM is dumb, empty or not set. */
bool ll_hold_live_is_possible(void);
int ll_hold_live_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

int ll_hold_record_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

#endif
