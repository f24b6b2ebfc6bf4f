/*
 * start.h - a mover for a card, where there is none.
 */
#ifndef LOADLINE_CLI_MOVER_START_H
#define LOADLINE_CLI_MOVER_START_H

#include "driver/cards.h"

/*
 * Makes sure that a mover serves the card: starts `loadline mover` in the background, and waits until it listens, at
 * most 30 s. The mover keeps no descriptor of this process (base/child.h), and ends by itself some time after its last
 * program. -ETIMEDOUT; -ECHILD: it has ended, and what it said is on the standard error stream.
 */
int ll_mover_start(const struct ll_card *card, const char *folder, struct ll_err *err);

#endif
