/*
 * block.h - makes the lines of the live display of `hold`. It uses neither a terminal nor a clock.
 *
 * A header line says that this is a synthetic load. Then each card has a tall block, or one line if the screen has too
 * few rows. If cards do not fit even so, a last line has their number. Every line is at most style->columns wide,
 * escape sequences not counted. There are at most style->rows lines.
 */
#ifndef LOADLINE_CLI_HOLD_BLOCK_H
#define LOADLINE_CLI_HOLD_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "hold/config.h"
#include "hold/event.h"

enum { LL_HOLD_BLOCK_SAMPLES = 60 };

struct ll_hold_block_style {
	unsigned columns;
	unsigned rows;
	bool is_utf8;
	bool has_color;
};

struct ll_hold_block_card {
	const struct ll_card *card;
	bool is_simulated;
	bool has_event;
	bool is_fault; /* the last state change was a fault */
	struct ll_hold_status status;
	double levels[LL_HOLD_BLOCK_SAMPLES]; /* a ring, the metric's unit */
	size_t sample_count; /* all samples so far; the newest is at (sample_count - 1) % LL_HOLD_BLOCK_SAMPLES */
};

void ll_hold_block_card_init(struct ll_hold_block_card *block_card, const struct ll_card *card);

/* Updates the card by an event. */
void ll_hold_block_card_event(struct ll_hold_block_card *card, const struct ll_event *event);

/*
 * Adds the lines, each ended by "\n". Returns their number. *ret_widest: the columns of the longest line.
 */
unsigned ll_hold_block_render(struct ll_strbuf *text, const struct ll_hold_block_style *style,
			      const struct ll_hold_config *hold, const struct ll_hold_block_card *cards, size_t count,
			      double elapsed_s, unsigned *ret_widest);

#endif
