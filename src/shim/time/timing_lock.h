/*
 * timing_lock.h - the lock around timing events, let go while the driver records one or says whether a stream has got
 * on.
 *
 * A stream's queue in the driver has room for some thousand operations (doc/facts.md). Where it is full the call that
 * records an event waits until the card has worked something off, which may take another thread's launch; and who asks
 * about the stream waits for whoever waits so. So no other thread may wait for whoever is in such a call.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_LOCK_H
#define LOADLINE_SHIM_TIME_TIMING_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A record is a matter of µs: one that takes longer than this is waiting for room, and is waited for no longer. */
#define LL_TIMING_LOCK_WAIT_NS UINT64_C(20000000)

struct ll_timing_lock {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	unsigned recording; /* threads that let it go */
};

void ll_timing_lock_init(struct ll_timing_lock *lock);
void ll_timing_lock_fini(struct ll_timing_lock *lock);

/* Around the driver's call. NULL is fine: there is one thread. */
void ll_timing_lock_let_go(struct ll_timing_lock *lock);
void ll_timing_lock_take_back(struct ll_timing_lock *lock);

/* Under the lock, which is let go meanwhile: until a record is back. False: until_ns (CLOCK_MONOTONIC) has come. */
bool ll_timing_lock_wait(struct ll_timing_lock *lock, uint64_t until_ns);

/* Under the lock, for what a record must not come into: until nobody records, or LL_TIMING_LOCK_WAIT_NS have passed. It
 * is let go meanwhile. */
void ll_timing_lock_settle(struct ll_timing_lock *lock);

#endif
