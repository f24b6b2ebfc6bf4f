/*
 * words.h - the phrases that the log, the summary and the display of `hold` have in common.
 */
#ifndef LOADLINE_CLI_HOLD_WORDS_H
#define LOADLINE_CLI_HOLD_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "hold/config.h"
#include "hold/event.h"

/* 100 for the ratios, which people read as percent; 1 for power. */
double ll_hold_scale(enum ll_metric metric);

/* "%" or "W". */
const char *ll_hold_unit(enum ll_metric metric);

/* "percent" or "watts", as in keys and columns. */
const char *ll_hold_unit_word(enum ll_metric metric);

/* "50 %", "49.5 %", "200 W", "unknown"; decimals only where they are not zero, one at most. */
void ll_hold_add_level(struct ll_strbuf *text, enum ll_metric metric, double value);

/* "util at 50 %", "util along a sine of 20 to 80 % every 60 s", "util as recorded, 5 to 95 %", "power at 200 W". */
void ll_hold_add_goal(struct ll_strbuf *text, const struct ll_hold_config *hold);

/* "holding", "yielded (foreign work)": the state, and why when it does not hold. */
void ll_hold_add_state(struct ll_strbuf *text, const struct ll_hold_status *status);

/* "50 MiB", "1.5 GiB"; below 1 MiB "12 KiB", "1 B", but "0 MiB". */
void ll_hold_add_bytes(struct ll_strbuf *text, uint64_t bytes);

#endif
