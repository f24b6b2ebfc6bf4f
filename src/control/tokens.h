/*
 * tokens.h - a cap on GPU time, as an account in nanoseconds.
 *
 * A tenant under a cap of 25 % earns 250 ns of GPU time per µs of wall time and pays for what it used. It may launch
 * while the account is above zero, and the account may go into debt: a kernel cannot be stopped, so a 100 ms kernel
 * under a cap of 10 % is paid for in the second that follows, and the long-run share is exact.
 *
 * The account holds at most LL_TOKENS_DEPTH_NS of earning time. That much of a pause is not lost: a program that works
 * for 50 ms and rests for 50 ms and is capped at 50 % runs as if it had no cap. It begins empty, so that the first
 * second has no more than its share.
 */
#ifndef LOADLINE_CONTROL_TOKENS_H
#define LOADLINE_CONTROL_TOKENS_H

#include <stdint.h>

#define LL_TOKENS_DEPTH_NS INT64_C(100000000)

/* The balance after elapsed_ns more of wall time. cap_permille 1..1000. */
int64_t ll_tokens_earn(int64_t balance_ns, uint64_t elapsed_ns, unsigned cap_permille);

/* What the account can hold. */
int64_t ll_tokens_most_ns(unsigned cap_permille);

/* How long until the balance is above zero, if nothing is spent; 0 when it is. */
uint64_t ll_tokens_wait_ns(int64_t balance_ns, unsigned cap_permille);

#endif
