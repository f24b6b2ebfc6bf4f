/*
 * words.h - phrases that the log, the summary and the display of `hold` share.
 */
#ifndef LOADLINE_CLI_HOLD_WORDS_H
#define LOADLINE_CLI_HOLD_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "hold/hold.h"

/* "percent" or "watts", as in keys and columns. */
const char *ll_hold_unit_word(enum ll_metric metric);

/* Adds "50 %", "49.5 %", "200 W" or "unknown": one decimal at most, and none if it is zero. */
void ll_hold_add_level(struct ll_strbuf *text, enum ll_metric metric, double value);

/* Adds "util at 50 %", "util along a sine of 20 to 80 % every 60 s", "util as recorded, 5 to 95 %", "power at 200 W".
 */
void ll_hold_add_goal(struct ll_strbuf *text, const struct ll_hold_config *hold);

/* Adds the state, and the reason if the card is not held: "holding", "yielded (foreign work)". */
void ll_hold_add_state(struct ll_strbuf *text, const struct ll_hold_status *status);

/* Adds "train (pid 123)", "train (pid 123) and 2 others" or "another program". */
void ll_hold_add_stranger(struct ll_strbuf *text, const struct ll_hold_stranger *stranger);

/* Adds "card 0: pid 123 of user eve has a name of its holds, and no context there", if there is such a process. */
void ll_hold_add_sitter(struct ll_strbuf *text, const struct ll_card *card, const struct ll_hold_sitter *sitter);

/* Whether the card is one of the simulator. The log, the summary, JSON lines, metrics and the display all say so. */
bool ll_hold_is_simulated(const struct ll_card *card);

/* Adds "50 MiB", "1.5 GiB"; below 1 MiB "12 KiB", "1 B", but "0 MiB". */
void ll_hold_add_bytes(struct ll_strbuf *text, uint64_t bytes);

#endif
