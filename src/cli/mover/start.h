/*
 * start.h - a mover for a card, where there is none.
 */
#ifndef LOADLINE_CLI_MOVER_START_H
#define LOADLINE_CLI_MOVER_START_H

#include "driver/cards.h"

/*
 * Makes sure that a mover serves the card: starts `loadline mover` in the background, and waits until it listens, at
 * most 30 s. The mover ends by itself some time after its last program. -ETIMEDOUT; or the mover's own error, which it
 * has told on the standard error stream.
 */
int ll_mover_start(const struct ll_card *card, const char *folder, struct ll_err *err);

#endif
