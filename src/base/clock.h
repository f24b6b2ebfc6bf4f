/*
 * clock.h - time, in nanoseconds, as unsigned 64-bit counts.
 *
 * ll_now_ns is CLOCK_MONOTONIC. It stands still during suspend and never jumps, so intervals and pacing use it.
 * ll_boot_ns is CLOCK_BOOTTIME. It goes on during suspend, so the difference between the two tells that the machine
 * slept. ll_wall_ns is CLOCK_REALTIME. It serves only what people read, and the sample times of NVML.
 */
#ifndef LOADLINE_BASE_CLOCK_H
#define LOADLINE_BASE_CLOCK_H

#include <stdint.h>

#define LL_NS_PER_US UINT64_C(1000)
#define LL_NS_PER_MS UINT64_C(1000000)
#define LL_NS_PER_S UINT64_C(1000000000)

uint64_t ll_now_ns(void);
uint64_t ll_boot_ns(void);
uint64_t ll_wall_ns(void);

/* Returns the CPU time that this thread has used. */
uint64_t ll_thread_cpu_ns(void);

/* Sleeps until ll_now_ns() reaches deadline_ns; a signal does not cut it short. Returns at once for the past. */
void ll_sleep_until_ns(uint64_t deadline_ns);

#endif
