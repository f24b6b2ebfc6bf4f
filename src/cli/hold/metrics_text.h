/*
 * metrics_text.h - the Prometheus text format (0.0.4) of a hold, and its health. No server, no clock.
 *
 * Every series has the labels gpu (the card's label, "0"), uuid and name. Ratios are 0..1; a value that is not known
 * has no line, a family without lines no HELP. Counters begin at 0 with the process.
 */
#ifndef LOADLINE_CLI_HOLD_METRICS_TEXT_H
#define LOADLINE_CLI_HOLD_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "hold/config.h"
#include "hold/event.h"

struct ll_metrics_card {
	const struct ll_card *card;
	bool has_event;    /* else only the card's existence is known */
	uint64_t event_ns; /* the last event, before one the beginning; ll_now_ns's clock */
	int code;          /* the -errno with which the card ended, 0 */
	struct ll_hold_status status;
	double yielded_s; /* stopped after having held */
};

void ll_metrics_text(struct ll_strbuf *text, enum ll_metric metric, const struct ll_metrics_card *cards, size_t count);

/* Adds "ok" or, a line each, what is wrong: a card that told nothing for 5 s, or ended with an error. */
bool ll_metrics_health(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count, uint64_t now_ns);

#endif
