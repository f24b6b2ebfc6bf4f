/*
 * internal.h - the parts of 'loadline hold': its options, the choice of cards, and its outputs.
 */
#ifndef LOADLINE_CLI_HOLD_INTERNAL_H
#define LOADLINE_CLI_HOLD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cli/options/option.h"
#include "driver/cards.h"
#include "hold/hold.h"

struct ll_err;
struct ll_hold_output;
struct ll_hold_sink;
struct ll_metrics;

/* ---- args ---- */

/* The options of `loadline hold`, and their translation into a struct ll_hold_config. */

struct ll_hold_args {
	char *cards;
	bool skip_unusable;
	int metric; /* enum ll_metric */
	const char *target;
	const char *idle_target;
	uint64_t idle_after_ns;
	const char *curve;
	int mode; /* enum ll_hold_mode */
	uint64_t resume_after_ns;
	uint64_t release_after_ns;
	uint64_t max_memory_bytes;
	double max_temperature_c;
	int payload; /* enum ll_payload_choice */
	bool mps;
	uint64_t wait_ns;
	uint64_t for_ns;
	bool json;
	bool dry_run;
	const char *record;
	const char *metrics_listen;
	uint64_t log_every_ns;
	const char *kernel_log;
};

extern const struct ll_option ll_hold_options[];

/*
 * Reads the target, the curve with its file, and the idle target. -EINVAL: a value is out of range, or two options
 * exclude each other. On success the caller frees config->curve by ll_curve_fini.
 */
int ll_hold_args_config(const struct ll_hold_args *args, struct ll_hold_config *ret_config, struct ll_err *err);

/* ---- cards ---- */

/* Chooses the cards that a hold takes from those that `-i` names. */

/*
 * Finds the cards of text (driver/cards.h) that can be held with this configuration, in PCI order. Cards of "all" that
 * do not answer cannot be held. With skips_unusable it leaves such cards out, each with a warning that has the reason.
 * Without it, one such card is an error, whose text has the reasons of all. It is also an error if no card is left.
 * *ret_cards is one allocation for free(3), NULL on errors. The driver owns the cards.
 */
int ll_hold_cards_choose(const struct ll_driver *driver, const char *text, const struct ll_hold_config *config,
			 bool skips_unusable, const struct ll_card ***ret_cards, size_t *ret_count, struct ll_err *err);

/* ---- output ---- */

/*
 * All outputs of `hold`. Their input is the events of hold/hold.h:
 *
 *   log        stderr, always: a line per state change, and one per card every --log-every       hold/command/text.c
 *   summary    stdout, unless is_json: a block per card at the end                               hold/command/text.c
 *   JSON       stdout, is_json: a line per event                                               hold/command/json.c
 *   display    stdout, is_live: a block per card, redrawn in place, log lines scroll above it    hold/command/live.c
 *   record     --record FILE.csv: a row per sample                                             hold/command/output.c
 *   metrics    --metrics-listen: Prometheus and /healthz                                       hold/command/metrics.c
 *
 *     ll_hold_output_new(&config, &output, err);           before any load starts
 *     loop: ll_hold_output_event(output, &event); ll_hold_output_tick(output, ll_now_ns());
 *     rc = ll_hold_output_finish(output, err);             after the last summary
 *     ll_hold_output_free(output);
 *
 * All calls come from one thread. The metrics have a thread of their own, and need no locking by the caller. No failure
 * of an output ends a hold: if stdout or the record fails, the load goes on, and one warning says so.
 */

/* The caller keeps all that the pointers lead to until the output is freed. */
struct ll_hold_output_config {
	bool is_json;
	bool is_live;               /* stdout is a terminal; with TERM unset or dumb there is no display */
	uint64_t log_every_ns;      /* 0: log lines for state changes only */
	const char *record_path;    /* NULL: none */
	const char *metrics_listen; /* see ll_listen; NULL: none */
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

/* ---- sink ---- */

/*
 * The interface of one kind of output of `hold`. hold/command/output.c makes the sinks and passes the events to
 * them.
 *
 * A sink embeds struct ll_hold_sink as its first field. event is mandatory, the others may be NULL.
 */

struct ll_hold_sink_ops {
	/* Handles an event of config->cards[slot]. */
	void (*event)(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot);
	/* Does the tasks that are due. Returns the time of the next one. UINT64_MAX: none before the next event. */
	uint64_t (*tick)(struct ll_hold_sink *sink, uint64_t now_ns);
	/* Called before fini at a regular end. Only a failure of stdout is an error. */
	int (*finish)(struct ll_hold_sink *sink, struct ll_err *err);
	/* Frees what the sink has beside its own memory. */
	void (*fini)(struct ll_hold_sink *sink);
};

struct ll_hold_sink {
	const struct ll_hold_sink_ops *ops;
	const struct ll_hold_output_config *config;
};

/* Makes a sink of so many bytes, and so many more for each card, with zeros behind struct ll_hold_sink. NULL: no
 * memory.
 */
void *ll_hold_sink_new(const struct ll_hold_sink_ops *ops, const struct ll_hold_output_config *config, size_t bytes,
		       size_t card_bytes);

/* Prints log lines, and the summaries at the end unless is_json. has_periodic: also a log line for each card every
 * --log-every. */
int ll_hold_text_new(const struct ll_hold_output_config *config, bool has_periodic, struct ll_hold_sink **ret_sink,
		     struct ll_err *err);

int ll_hold_json_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

/* False if the terminal cannot redraw lines: TERM is dumb, empty or not set. */
bool ll_hold_live_is_possible(void);
int ll_hold_live_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err);

/* ---- metrics ---- */

/*
 * Serves the state of a hold over HTTP, for Prometheus.
 *
 * src/serve/http.h says what is served; metrics.c has the names. /healthz is 200 "ok" if every card had an event
 * within the last 5 s, otherwise 503 with the reason. There are at most 32 connections.
 */

/* Binds address (serve/http.h) and starts the server. Errors are those of ll_listen, with "metrics: " in front. */
int ll_metrics_new(const char *address, enum ll_metric metric, const struct ll_card *const *cards, size_t count,
		   struct ll_metrics **ret_metrics, struct ll_err *err);

/* Reports an event of cards[slot]. */
void ll_metrics_event(struct ll_metrics *metrics, const struct ll_event *event, size_t slot);

unsigned ll_metrics_port(const struct ll_metrics *metrics);

/* Closes the port and all connections, and frees metrics, which may be NULL. */
void ll_metrics_free(struct ll_metrics *metrics);

/* ---- metrics text ---- */

/*
 * Makes the Prometheus text (format 0.0.4) of a hold, and the text of its health. It uses neither a
 * server nor a clock.
 *
 * Every series has the labels gpu (the card's label, such as "0"), uuid and name, and simulated="true" if the card is
 * one of the simulator. Ratios are 0 to 1. A value that is not known has no line, and a family without lines has no
 * HELP. Counters begin at 0 when the process starts.
 */

struct ll_metrics_card {
	const struct ll_card *card;
	enum ll_metric metric; /* the held one */
	bool is_simulated;
	bool has_event;    /* false: the card has had no event yet, so only its identity is known */
	uint64_t event_ns; /* time of the last event, or of the start before the first event; clock of ll_now_ns */
	int code;          /* the -errno with which the card's hold ended, or 0 */
	struct ll_hold_status status;
};

void ll_metrics_text(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count);

/* Adds "ok" and returns true, or adds a line for each fault and returns false. A card has a fault if it had no event
 * for 5 s, or ended with an error. */
bool ll_metrics_health(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count, uint64_t now_ns);

#endif
