/*
 * simctl_busy.h - `loadline-simctl busy`: simulates a foreign program on a card.
 */
#ifndef LOADLINE_SIM_SIMCTL_SIMCTL_BUSY_H
#define LOADLINE_SIM_SIMCTL_SIMCTL_BUSY_H

struct ll_err;

/* Runs a CUDA program like any other. words: as on the command line, after `busy`. */
int simctl_busy(int count, char **words, struct ll_err *err);

#endif
