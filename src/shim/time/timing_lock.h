/*
 * timing_lock.h - the lock of a flow. A thread releases it while it records an event by the driver, and while it asks
 * the driver whether a stream has work.
 *
 * A stream's queue in the driver has room for about a thousand operations (doc/facts.md). If the queue is full, the
 * call that records an event waits until the card has done some of them. The card's progress may depend on another
 * thread's launch. A thread that asks the driver about such a stream waits too. So no other thread may have to wait for
 * a thread in such a call.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_LOCK_H
#define LOADLINE_SHIM_TIME_TIMING_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread waits this long for another thread that records an event. Recording takes some µs. A call that takes longer
 * waits for room in the queue. */
#define LL_TIMING_LOCK_WAIT_NS UINT64_C(20000000)

struct ll_timing_lock {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	unsigned recording; /* threads that have released the lock for a call of the driver */
};

void ll_timing_lock_init(struct ll_timing_lock *lock);
void ll_timing_lock_fini(struct ll_timing_lock *lock);

/* ll_timing_lock_let_go releases the lock before a call of the driver. ll_timing_lock_take_back acquires it after the
 * call. lock NULL: there is only one thread. */
void ll_timing_lock_let_go(struct ll_timing_lock *lock);
void ll_timing_lock_take_back(struct ll_timing_lock *lock);

/* Waits until a thread acquires the lock after its call of the driver. Returns false if until_ns (CLOCK_MONOTONIC) is
 * reached first. The caller holds the lock, which is released meanwhile. */
bool ll_timing_lock_wait(struct ll_timing_lock *lock, uint64_t until_ns);

/* Waits until no thread is in such a call, at most LL_TIMING_LOCK_WAIT_NS, because the caller's next step must not run
 * beside one. The caller holds the lock, which is released meanwhile. */
void ll_timing_lock_settle(struct ll_timing_lock *lock);

#endif
