/*
 * wait_for.h - waits for a condition, which is tried every millisecond, and fails the test after a deadline. Bounds of
 * time are those of a host that is free; a busy host has more, as many times as there are programs for each of its
 * processors.
 */
#ifndef LOADLINE_TESTS_COMMON_WAIT_FOR_H
#define LOADLINE_TESTS_COMMON_WAIT_FOR_H

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define DEADLINE_NS (30 * LL_NS_PER_S) /* generous: a loaded machine must not fail a test */

/* Did what began then take less than so long? The load is the system's average over the last minute. */
static inline bool is_in_time(uint64_t began_ns, uint64_t allowed_ns)
{
	uint64_t took_ns = ll_now_ns() - began_ns;
	double load = 0;
	if (took_ns < allowed_ns)
		return true;
	FILE *file = fopen("/proc/loadavg", "re");
	if (file) {
		if (fscanf(file, "%lf", &load) != 1)
			load = 0;
		fclose(file);
	}
	return (double)took_ns < (double)allowed_ns * (1 + load / (double)sysconf(_SC_NPROCESSORS_ONLN));
}

#define wait_for(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t wait_began_ns = ll_now_ns();                                                                  \
		while (!(condition)) {                                                                                 \
			if (!is_in_time(wait_began_ns, DEADLINE_NS))                                                   \
				fail_msg("never: %s", #condition);                                                     \
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);                                                 \
		}                                                                                                      \
	} while (0)

#endif
