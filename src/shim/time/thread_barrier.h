/*
 * thread_barrier.h - runs a full memory fence in every thread of this process (membarrier(2)).
 */
#ifndef LOADLINE_SHIM_TIME_THREAD_BARRIER_H
#define LOADLINE_SHIM_TIME_THREAD_BARRIER_H

/* Asks the kernel for permission, once before the first barrier. Returns 0. Returns a negative errno if the kernel has
 * no such barrier (before Linux 4.14) or if a sandbox refuses the call. */
int ll_thread_barrier_allow(void);

/* When this returns 0, every thread of the process has run a full fence. Otherwise returns a negative errno. */
int ll_thread_barrier(void);

#endif
