/*
 * duty.h - how long the next kernel must be, so that the card is busy for the wanted share of time.
 *
 * This is an account, not a schedule. Time earns busy time at the wanted rate, and every launch spends its length. So a
 * host thread that wakes late loses nothing: the next kernel is longer by what was missed, and NVML's window of 200 ms
 * still has the right sum. Credit over LL_DUTY_CREDIT_MAX_NS is dropped, so that a machine that was suspended does not
 * make up for the whole time.
 *
 * There is one kernel a period of 2 ms, and none is longer: foreign work may have to wait for the kernel that runs,
 * because not every back end's kernels are preempted, and the load notices it at the next kernel.
 *
 * Pure arithmetic. Times are ns of one clock.
 */
#ifndef LOADLINE_RULES_HOLD_DUTY_H
#define LOADLINE_RULES_HOLD_DUTY_H

#include <stdint.h>

#define LL_DUTY_PERIOD_NS UINT64_C(2000000)      /* from one launch to the next: 1.3 % of a core (doc/benchmarks.md) */
#define LL_DUTY_KERNEL_MIN_NS UINT64_C(5000)     /* a shorter kernel takes longer to launch than to run */
#define LL_DUTY_KERNEL_MAX_NS UINT64_C(2000000)  /* about the card's own time slice (doc/facts.md) */
#define LL_DUTY_FILL_PERIOD_NS UINT64_C(1000000) /* beside others: half the wait for them, at 2 % of a core */
#define LL_DUTY_CREDIT_MAX_NS UINT64_C(25000000) /* 1/8 of NVML's window */

struct ll_duty {
	double credit_ns;
	uint64_t last_ns;
};

/* Starts an empty account at now_ns. */
void ll_duty_restart(struct ll_duty *duty, uint64_t now_ns);

/*
 * Earns ratio (0..1) of the time since the last call. Spends and returns the length of the kernel to launch now, at
 * most longest_ns. 0: launch none; the credit is kept for the next call. If the credit is enough for more than one
 * kernel, the next call at the same time returns another one.
 */
uint64_t ll_duty_next_ns(struct ll_duty *duty, uint64_t now_ns, double ratio, uint64_t longest_ns);

/* Returns the longest kernel in fill: one and a half times the usual one. So the load catches up, and others do not
 * wait long. */
uint64_t ll_duty_fill_longest_ns(double ratio);

/* Gives back the time that a kernel did not use because it ended early. */
void ll_duty_refund(struct ll_duty *duty, uint64_t unused_ns);

#endif
