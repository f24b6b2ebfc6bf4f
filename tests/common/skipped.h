/*
 * skipped.h - what a test program leaves out: said on standard output, a line each, so that a run of all tests can
 * count it. meson keeps what a program prints. Only for a program that otherwise passes: one that skips all exits
 * with 77.
 *
 *     SKIPPED: killed_while_it_sweeps: no process may be traced here
 */
#ifndef LOADLINE_TESTS_COMMON_SKIPPED_H
#define LOADLINE_TESTS_COMMON_SKIPPED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name is that of the test function; the caller skips it, or that part of it. */
static inline void say_skipped(const char *name, const char *reason)
{
	printf("SKIPPED: %s: %s\n", name, reason);
	fflush(stdout);
}

/* In a cmocka test function: the test ends here. cmocka.h comes first. */
#define SKIP_TEST(reason) SKIP_TEST_OF(__func__, reason)

/* The same, from a function that the test calls. */
#define SKIP_TEST_OF(name, reason)                                                                                     \
	do {                                                                                                           \
		say_skipped((name), (reason));                                                                         \
		skip();                                                                                                \
	} while (0)

/* LOADLINE_TEST_LONG=1: as many repetitions as `make check-all` makes, else fewer of the same. */
static inline bool is_long_test(void)
{
	const char *text = getenv("LOADLINE_TEST_LONG");
	return text && strcmp(text, "1") == 0;
}

/* Where a program is built with the thread sanitizer: -DLL_HAS_THREAD_SANITIZER. */
#ifdef LL_HAS_THREAD_SANITIZER
#define SKIP_UNDER_THREAD_SANITIZER(reason) SKIP_TEST(reason)
#else
#define SKIP_UNDER_THREAD_SANITIZER(reason) ((void)0)
#endif

#endif
