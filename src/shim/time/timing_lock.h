/*
 * timing_lock.h - the lock of a flow. A thread lets it go while the driver records an event, or while it asks the
 * driver how far a stream has got.
 *
 * A stream's queue in the driver has room for some thousand operations (doc/facts.md). If it is full, the call that
 * records an event waits until the card has done some of them, and that may depend on another thread's launch. A thread
 * that asks about such a stream waits too. So no other thread may wait for a thread that is in such a call.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_LOCK_H
#define LOADLINE_SHIM_TIME_TIMING_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Recording an event takes some µs. A call that takes longer than this waits for room in the queue. Other threads do
 * not wait for it any longer. */
#define LL_TIMING_LOCK_WAIT_NS UINT64_C(20000000)

struct ll_timing_lock {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	unsigned recording; /* threads that have let it go */
};

void ll_timing_lock_init(struct ll_timing_lock *lock);
void ll_timing_lock_fini(struct ll_timing_lock *lock);

/* Let the lock go before a call of the driver, and take it back after it. NULL: there is only one thread. */
void ll_timing_lock_let_go(struct ll_timing_lock *lock);
void ll_timing_lock_take_back(struct ll_timing_lock *lock);

/* Under the lock, which is let go meanwhile. Waits until a call that records has returned. False: until_ns
 * (CLOCK_MONOTONIC) has come. */
bool ll_timing_lock_wait(struct ll_timing_lock *lock, uint64_t until_ns);

/* Under the lock, which is let go meanwhile. Waits until no thread records an event, or for LL_TIMING_LOCK_WAIT_NS:
 * what the caller does next must not meet one. */
void ll_timing_lock_settle(struct ll_timing_lock *lock);

#endif
