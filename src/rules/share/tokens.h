/*
 * tokens.h - a cap on GPU time: a token bucket in nanoseconds.
 *
 * A tenant under a cap of 25 % earns 250 ns of GPU time per us of wall time, and pays for what it used. It may launch
 * while the balance is above zero. The balance may go below zero, because a kernel cannot be stopped: a kernel of 100
 * ms under a cap of 10 % is paid for in the second that follows. So the share in the long run is exact.
 *
 * The bucket holds at most what LL_TOKENS_DEPTH_NS of wall time earn, so a short pause is not lost: a program that
 * works for 50 ms, rests for 50 ms and is capped at 50 % runs as if it had no cap. The bucket starts empty, so that the
 * first second has no more than its share.
 *
 * Pure arithmetic. Times and balances are ns.
 */
#ifndef LOADLINE_RULES_SHARE_TOKENS_H
#define LOADLINE_RULES_SHARE_TOKENS_H

#include <stdint.h>

#define LL_TOKENS_DEPTH_NS INT64_C(100000000)

/* Returns the balance after elapsed_ns more of wall time. cap_permille: 1..1000. */
int64_t ll_tokens_earn(int64_t balance_ns, uint64_t elapsed_ns, unsigned cap_permille);

/* Returns the largest balance. */
int64_t ll_tokens_most_ns(unsigned cap_permille);

/* Returns how long it takes until the balance is above zero if nothing is spent; 0: it is. */
uint64_t ll_tokens_wait_ns(int64_t balance_ns, unsigned cap_permille);

#endif
