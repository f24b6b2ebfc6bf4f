/*
 * output.h - all outputs of `hold`. Their input is the events of hold/event.h:
 *
 *   log        stderr, always: a line per state change, and one per card every --log-every       cli/hold/text.c
 *   summary    stdout, unless is_json: a block per card at the end                               cli/hold/text.c
 *   JSON       stdout, is_json: a line per event                                               cli/hold/json.c
 *   display    stdout, is_live: a block per card, redrawn in place, log lines scroll above it    cli/hold/live.c
 *   record     --record FILE.csv: a row per sample                                             cli/hold/record.c
 *   metrics    --metrics-listen: Prometheus and /healthz                                       metrics.h
 *
 *     ll_hold_output_new(&config, &output, err);           before any load starts
 *     loop: ll_hold_output_event(output, &event); ll_hold_output_tick(output, ll_now_ns());
 *     rc = ll_hold_output_finish(output, err);             after the last summary
 *     ll_hold_output_free(output);
 *
 * All calls come from one thread. The metrics have a thread of their own, and need no locking by the caller. No failure
 * of an output ends a hold: if stdout or the record fails, the load goes on, and one warning says so.
 */
#ifndef LOADLINE_CLI_HOLD_OUTPUT_H
#define LOADLINE_CLI_HOLD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hold/config.h"
#include "hold/event.h"

struct ll_err;
struct ll_hold_output;

/* The caller keeps all that the pointers lead to until the output is freed. */
struct ll_hold_output_config {
	bool is_json;
	bool is_live;               /* stdout is a terminal; with TERM unset or dumb there is no display */
	uint64_t log_every_ns;      /* 0: log lines for state changes only */
	const char *record_path;    /* NULL: none */
	const char *metrics_listen; /* see listen.h; NULL: none */
	const struct ll_hold_config *hold;
	const struct ll_card *const *cards;
	size_t count;
};

/*
 * Opens the record and binds the metrics port before any load starts, because both can fail. The error names the
 * record's file. -EINVAL: the address is malformed. -EADDRINUSE: the port is in use. On failure nothing but an empty
 * record stays.
 */
int ll_hold_output_new(const struct ll_hold_output_config *config, struct ll_hold_output **ret_output,
		       struct ll_err *err);

/* Passes an event to all outputs. Events of cards that are not in the config are ignored. */
void ll_hold_output_event(struct ll_hold_output *output, const struct ll_event *event);

/*
 * Redraws the display, writes the periodic log lines and flushes the record, each if it is due. The caller calls it
 * after the events of each wake-up, and at the time that it returns. UINT64_MAX: not before the next event.
 */
uint64_t ll_hold_output_tick(struct ll_hold_output *output, uint64_t now_ns);

/*
 * Removes the display, prints the summaries unless is_json printed them already, closes the record and the port.
 * Returns a negative errno if stdout did not take its output. Call it once.
 */
int ll_hold_output_finish(struct ll_hold_output *output, struct ll_err *err);

/* Frees the output, which may be NULL. If finish was not called, because the start failed, it prints no summaries, and
 * restores the terminal.
 */
void ll_hold_output_free(struct ll_hold_output *output);

/* Returns the TCP port of the metrics, 0 if there are none. The kernel chooses the port if the address has port 0. */
unsigned ll_hold_output_port(const struct ll_hold_output *output);

#endif
