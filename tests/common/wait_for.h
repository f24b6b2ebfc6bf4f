/*
 * wait_for.h - waits for a condition, which is tried every millisecond, and fails the test after a deadline.
 */
#ifndef LOADLINE_TESTS_COMMON_WAIT_FOR_H
#define LOADLINE_TESTS_COMMON_WAIT_FOR_H

#include "base/clock.h"

#define DEADLINE_NS (30 * LL_NS_PER_S) /* generous: a loaded machine must not fail a test */

#define wait_for(condition)                                                                                            \
	do {                                                                                                           \
		uint64_t deadline_ns = ll_now_ns() + DEADLINE_NS;                                                      \
		while (!(condition)) {                                                                                 \
			if (ll_now_ns() > deadline_ns)                                                                 \
				fail_msg("never: %s", #condition);                                                     \
			ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);                                                 \
		}                                                                                                      \
	} while (0)

#endif
