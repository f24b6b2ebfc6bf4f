/*
 * metrics_text.h - makes the Prometheus text (format 0.0.4) of a hold, and the text of its health. It uses neither a
 * server nor a clock.
 *
 * Every series has the labels gpu (the card's label, such as "0"), uuid and name, and simulated="true" if the card is
 * one of the simulator. Ratios are 0 to 1. A value that is not known has no line, and a family without lines has no
 * HELP. Counters begin at 0 when the process starts.
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
	bool is_simulated;
	bool has_event;    /* false: the card has had no event yet, so only its identity is known */
	uint64_t event_ns; /* time of the last event, or of the start before the first event; clock of ll_now_ns */
	int code;          /* the -errno with which the card's hold ended, or 0 */
	struct ll_hold_status status;
};

void ll_metrics_text(struct ll_strbuf *text, enum ll_metric metric, const struct ll_metrics_card *cards, size_t count);

/* Adds "ok" and returns true, or adds a line for each fault and returns false. A card has a fault if it had no event
 * for 5 s, or ended with an error. */
bool ll_metrics_health(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count, uint64_t now_ns);

#endif
