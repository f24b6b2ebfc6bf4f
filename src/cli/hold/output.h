/*
 * output.h - everything `hold` tells the world, fed with the events of hold/event.h:
 *
 *   log        stderr, always: a line per state change, and one a card per --log-every       cli/hold/text.c
 *   summary    stdout, unless is_json: a block a card at the end                               cli/hold/text.c
 *   JSON       stdout, is_json: a line per event                                               cli/hold/json.c
 *   display    stdout, is_live: a block a card, redrawn in place, log lines scroll above it    cli/hold/live.c
 *   record     --record FILE.csv: a row per sample                                             cli/hold/record.c
 *   metrics    --metrics-listen: Prometheus and /healthz                                       metrics.h
 *
 *     ll_hold_output_new(&config, &output, err);           before any load starts
 *     loop: ll_hold_output_event(output, &event); ll_hold_output_tick(output, ll_now_ns());
 *     rc = ll_hold_output_finish(output, err);             after the last summary
 *     ll_hold_output_free(output);
 *
 * All calls come from one thread; the metrics' own thread is nobody's concern. Nothing here can end a hold: stdout,
 * record or scrapers may fail, the load goes on and one warning tells of it.
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

/* What the pointers lead to must outlive the output. */
struct ll_hold_output_config {
	bool is_json;
	bool is_live;               /* stdout is a terminal; with TERM=dumb, or none, there are plain log lines still */
	uint64_t log_every_ns;      /* 0: state changes only */
	const char *record_path;    /* NULL: none */
	const char *metrics_listen; /* see listen.h; NULL: none */
	const struct ll_hold_config *hold;
	const struct ll_card *const *cards;
	size_t count;
};

/*
 * Does what can fail first: opens the record (its name is in the error), binds the metrics port (-EINVAL for a
 * malformed address, -EADDRINUSE for a port in use, ...). On failure nothing is left behind, but an empty record.
 */
int ll_hold_output_new(const struct ll_hold_output_config *config, struct ll_hold_output **ret_output,
		       struct ll_err *err);

/* Events of cards that the config does not have are left out. */
void ll_hold_output_event(struct ll_hold_output *output, const struct ll_event *event);

/*
 * Redraws, writes the periodic log lines, flushes the record. After the events of a wake-up, and by the time that it
 * returns (UINT64_MAX: with the next event).
 */
uint64_t ll_hold_output_tick(struct ll_hold_output *output, uint64_t now_ns);

/*
 * Takes the display away, prints the summaries that is_json has not printed yet, closes the record and the port.
 * A negative errno when stdout did not take all of what was for it. Once.
 */
int ll_hold_output_finish(struct ll_hold_output *output, struct ll_err *err);

/* Without finish before it (a start that failed) prints no summaries, but leaves the terminal as it was. NULL is fine.
 */
void ll_hold_output_free(struct ll_hold_output *output);

/* The TCP port that the metrics listen on, 0 without: of use when the address asked for port 0. */
unsigned ll_hold_output_port(const struct ll_hold_output *output);

#endif
