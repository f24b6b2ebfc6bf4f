/*
 * block.h - the lines of the live display of `hold`, made from what is known: no terminal, no clock.
 *
 * A header line says that this is a synthetic load. Each card then has a tall block, or one line where the screen is
 * too low for that; cards that do not fit even so are counted in a last line. Every line is at most style->columns
 * wide, escape sequences not counted, and there are at most style->rows of them.
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
	size_t sample_count;                  /* ever; the newest is (sample_count - 1) % LL_HOLD_BLOCK_SAMPLES */
};

void ll_hold_block_card_init(struct ll_hold_block_card *block_card, const struct ll_card *card);

/* Keeps what an event tells. */
void ll_hold_block_card_event(struct ll_hold_block_card *card, const struct ll_event *event);

/*
 * Adds the lines, each ended by "\n". Returns their number; *ret_widest is the longest one's columns.
 */
unsigned ll_hold_block_render(struct ll_strbuf *text, const struct ll_hold_block_style *style,
			      const struct ll_hold_config *hold, const struct ll_hold_block_card *cards, size_t count,
			      double elapsed_s, unsigned *ret_widest);

#endif
