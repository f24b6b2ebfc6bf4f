#include "shim/time/timing_lock.h"

#include <time.h>

#include "base/clock.h"
#include "base/scope.h"

/* The agent holds the mutex for some us in each ms. A thread that launches meanwhile spins on the mutex, because this
 * takes less time than a sleep. */
static void init_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP /* not in musl */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

void ll_timing_lock_init(struct ll_timing_lock *lock)
{
	pthread_condattr_t attr;
	init_mutex(&lock->mutex);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&lock->done, &attr);
	pthread_condattr_destroy(&attr);
	lock->recording = 0;
}

void ll_timing_lock_fini(struct ll_timing_lock *lock)
{
	pthread_cond_destroy(&lock->done);
	pthread_mutex_destroy(&lock->mutex);
}

void ll_timing_lock_let_go(struct ll_timing_lock *lock)
{
	if (!lock)
		return;
	lock->recording++;
	pthread_mutex_unlock(&lock->mutex);
}

void ll_timing_lock_take_back(struct ll_timing_lock *lock)
{
	if (!lock)
		return;
	pthread_mutex_lock(&lock->mutex);
	lock->recording--;
	pthread_cond_broadcast(&lock->done);
}

bool ll_timing_lock_wait(struct ll_timing_lock *lock, uint64_t until_ns)
{
	LL_SCOPE_NO_CANCEL;
	struct timespec until = {.tv_sec = (time_t)(until_ns / LL_NS_PER_S), .tv_nsec = (long)(until_ns % LL_NS_PER_S)};
	return lock && pthread_cond_timedwait(&lock->done, &lock->mutex, &until) == 0;
}

void ll_timing_lock_settle(struct ll_timing_lock *lock)
{
	uint64_t until_ns = ll_now_ns() + LL_TIMING_LOCK_WAIT_NS;
	while (lock->recording && ll_timing_lock_wait(lock, until_ns))
		;
}
