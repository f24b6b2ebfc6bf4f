/*
 * test.h - what cmocka wants included before itself, and shorthands for our conventions.
 */
#ifndef LOADLINE_TESTS_UNIT_TEST_H
#define LOADLINE_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "skipped.h"

/* call fails with code, and its text contains part. Needs a `struct ll_err err`. */
#define assert_fails(call, expected_code, part)                                                                        \
	do {                                                                                                           \
		err = (struct ll_err){0};                                                                              \
		assert_int_equal((call), (expected_code));                                                             \
		assert_int_equal(err.code, (expected_code));                                                           \
		if (!strstr(err.text, (part)))                                                                         \
			fail_msg("'%s' does not contain '%s'", err.text, (part));                                      \
	} while (0)

#endif
