/*
 * duty.h - how long the next kernel must be, so that the card is busy for the wanted share of time.
 *
 * An account, not a schedule: time passing earns busy time at the wanted rate, every launch spends its length. A host
 * thread that wakes late therefore loses nothing: the next kernel is longer by what was missed, and a 200 ms window
 * of NVML still holds the right sum. What could not be spent within LL_DUTY_CREDIT_MAX_NS is forgotten, so that a
 * suspended machine does not make up for the night.
 *
 * One kernel a period of 2 ms, and none longer than that: a stranger waits for the kernel that runs, for not every back
 * end's kernels are preempted, and it is met at the next one.
 */
#ifndef LOADLINE_CONTROL_DUTY_H
#define LOADLINE_CONTROL_DUTY_H

#include <stdint.h>

#define LL_DUTY_PERIOD_NS UINT64_C(2000000)      /* from one launch to the next: 1.3 % of a core (doc/benchmarks.md) */
#define LL_DUTY_KERNEL_MIN_NS UINT64_C(5000)     /* shorter ones cost more to launch than they last */
#define LL_DUTY_KERNEL_MAX_NS UINT64_C(2000000)  /* about the card's own time slice (doc/facts.md) */
#define LL_DUTY_FILL_PERIOD_NS UINT64_C(1000000) /* beside others: half the wait for them, at 2 % of a core */
#define LL_DUTY_CREDIT_MAX_NS UINT64_C(25000000) /* 1/8 of NVML's window */

struct ll_duty {
	double credit_ns;
	uint64_t last_ns;
};

/* Begins an empty account at now_ns: what is past earns nothing. */
void ll_duty_restart(struct ll_duty *duty, uint64_t now_ns);

/*
 * Earns ratio (0..1) of the time since the last call, spends and returns the length of the kernel to launch now, at
 * most longest_ns; 0 for none (what there is is kept for the next call). When a whole longest kernel is still owed, the
 * next call, at the same time, gives another.
 */
uint64_t ll_duty_next_ns(struct ll_duty *duty, uint64_t now_ns, double ratio, uint64_t longest_ns);

/* The longest kernel in fill: half as long again as the usual one, so that it catches up without making others wait. */
uint64_t ll_duty_fill_longest_ns(double ratio);

/* Gives back what a kernel did not use because it ended early; it is launched again later. */
void ll_duty_refund(struct ll_duty *duty, uint64_t unused_ns);

#endif
