/*
 * simctl.h - loadline-simctl: looks at and changes a simulated world while programs run in it.
 */
#ifndef LOADLINE_SIM_SIMCTL_SIMCTL_H
#define LOADLINE_SIM_SIMCTL_SIMCTL_H

struct ll_err;

/* `busy`: plays a stranger on a card, a CUDA program like any other. words as on the command line. */
int simctl_busy(int count, char **words, struct ll_err *err);

/* `show`: cards, contexts and processes as they are now. */
int simctl_show(struct ll_err *err);

#endif
