/*
 * trial.h - tries whether a card lets a program set its own time on it, as an ordinary user: by two contexts of its
 * own, on a card that is otherwise idle.
 *
 * What a card and its driver do is measured and not concluded from versions: some keep a slice and ignore it, and a
 * later driver may refuse a call. Two processes launch as much as the card takes. Their slices are set as 4 : 1, and
 * their progress is compared. Then one is taken off the card beside the other, then both, and then both are let on
 * again. At the end all that their kernels have computed must be right.
 */
#ifndef LOADLINE_SENSOR_TRIAL_H
#define LOADLINE_SENSOR_TRIAL_H

#include <stdint.h>

struct ll_err;

/* How a program can set its own time on the card (src/slices). */
enum ll_trial_lever {
	LL_TRIAL_SLICES = 1,  /* the length of its time slices */
	LL_TRIAL_COMMITS = 2, /* that counts only after a preemption */
	LL_TRIAL_OFF = 4,     /* it can be taken off the card, and let on again */
};

struct ll_trial_result {
	unsigned levers;                /* enum ll_trial_lever */
	double ratio;                   /* of their progress; 4 was asked for */
	uint64_t set_ns, off_ns, on_ns; /* how long a call took */
	uint64_t kernels, wrong;        /* kernels, and those with a wrong result */
};

/*
 * Takes some 3 s. Makes two processes and a context in each; they end with the caller. Call it in a process that has
 * not used CUDA, and has one thread. Errors: no driver, no such card, no context, or a process that does not answer.
 */
int ll_trial_run(const char *uuid, struct ll_trial_result *ret_result, struct ll_err *err);

#endif
