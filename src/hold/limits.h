/*
 * limits.h - when a delay is somebody else's work and not noise: thresholds, with what they come from.
 *
 * Measured alone and beside foreign work on an H200, see doc/facts.md "Sensing foreign work".
 */
#ifndef LOADLINE_HOLD_LIMITS_H
#define LOADLINE_HOLD_LIMITS_H

/* A running kernel that is cut loses the card for a time slice of 2 ms (a Vulkan one is not cut). Alone the largest
 * hole was 12 us. */
#define LL_LIMIT_GAP_NS 100000

/*
 * The first kernel after any foreign one starts 130 us late (a context switch), even when the card is idle again. Alone
 * the largest lateness, without what the launch call itself took, was 9 us.
 */
#define LL_LIMIT_LATE_NS 60000

/* The limit the kernel itself applies cannot leave out the launch call, which took 0.3 ms at worst. */
#define LL_LIMIT_LATE_ON_CARD_NS 100000

/* The first kernel after a pause may pay the switch from whoever was on the card last. */
#define LL_LIMIT_FIRST_LATE_NS 300000

/* fill: after meeting foreign work stay off the card for about a time slice (2.1 ms). */
#define LL_STEP_BACK_NS 2200000

#endif
