#include "base/clock.h"

#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * LL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t ll_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t ll_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t ll_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t ll_thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void ll_sleep_until_ns(uint64_t deadline_ns)
{
	struct timespec ts = {
	    .tv_sec = (time_t)(deadline_ns / LL_NS_PER_S),
	    .tv_nsec = (long)(deadline_ns % LL_NS_PER_S),
	};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}
