/*
 * test.h - tests that register themselves, on cmocka, and shorthands for our conventions.
 *
 *     TEST(a_sum_of_nothing_is_zero)
 *     {
 *             assert_int_equal(sum(NULL, 0), 0);
 *     }
 *
 * A program's tests run in the order of its source files. It needs no main and no list: common/main.c has one, which
 * takes `PROGRAM [PATTERN]` (cmocka's pattern: * and ?), and `PROGRAM --list`, which prints the names. A program that
 * has more to do before or after its tests has a main of its own, which calls tests_run.
 */
#ifndef LOADLINE_TESTS_COMMON_TEST_H
#define LOADLINE_TESTS_COMMON_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "skipped.h"

struct registered_test {
	struct CMUnitTest unit;
	const char *file;
	int line;
	const char *group; /* NULL: the tests of TEST and TEST_WITH */
	bool has_fixture;  /* of its own, in place of TEST_EACH's */
	struct registered_test *next;
};

void test_register(struct registered_test *test);
void test_register_each(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void test_register_root(void);
void test_register_all(CMFixtureFunction set_up, CMFixtureFunction tear_down);

#define TEST_CONSTRUCTOR(name) __attribute__((constructor)) static void name(void)

#define TEST_REGISTERED(test_group, with_fixture, set_up, tear_down, test_name)                                        \
	static void test_name(void **state);                                                                           \
	TEST_CONSTRUCTOR(register_##test_name)                                                                         \
	{                                                                                                              \
		static struct registered_test test = {.unit = {#test_name, test_name, set_up, tear_down, NULL},        \
						      .file = __FILE__,                                                \
						      .line = __LINE__,                                                \
						      .group = (test_group),                                           \
						      .has_fixture = (with_fixture)};                                  \
		test_register(&test);                                                                                  \
	}                                                                                                              \
	static void test_name(__attribute__((unused)) void **state)

/* A test: the function's body follows. *state is what its fixture left. */
#define TEST(name) TEST_REGISTERED(NULL, false, NULL, NULL, name)

/* A test with functions of its own before and after it (int set_up(void **state), 0: done). Either may be NULL. */
#define TEST_WITH(set_up, tear_down, name) TEST_REGISTERED(NULL, true, set_up, tear_down, name)

/* A test that runs only where a main of the program's own asks for its group (tests_run_group). */
#define TEST_OF_GROUP(group, set_up, tear_down, name) TEST_REGISTERED(group, true, set_up, tear_down, name)

/* A test that takes what its fixture left as a parameter: TEST_GIVEN(struct scene *scene, name). */
#define TEST_GIVEN(parameter, name)                                                                                    \
	static void given_##name(parameter);                                                                           \
	TEST(name)                                                                                                     \
	{                                                                                                              \
		given_##name(*state);                                                                                  \
	}                                                                                                              \
	static void given_##name(parameter)

/* Tests that are one body, which a function runs, in a world, a process or otherwise: what follows is the body.
 * TEST_RUN_BY: run(body). TEST_IN: run(scenario, body). TEST_IN_WORLD: in_world of sim/process.h or
 * unit/driver_world.h. */
#define TEST_RUN_BY(run, name)                                                                                         \
	static void body_of_##name(void);                                                                              \
	TEST(name)                                                                                                     \
	{                                                                                                              \
		run(body_of_##name);                                                                                   \
	}                                                                                                              \
	static void body_of_##name(void)
#define TEST_IN(run, scenario, name)                                                                                   \
	static void body_of_##name(void);                                                                              \
	TEST(name)                                                                                                     \
	{                                                                                                              \
		run((scenario), body_of_##name);                                                                       \
	}                                                                                                              \
	static void body_of_##name(void)
#define TEST_IN_WORLD(scenario, name) TEST_IN(in_world, scenario, name)

/* Before and after each TEST of the program, once in it: TEST_EACH(set_up, tear_down); */
#define TEST_EACH(set_up, tear_down)                                                                                   \
	TEST_CONSTRUCTOR(register_each)                                                                                \
	{                                                                                                              \
		test_register_each(set_up, tear_down);                                                                 \
	}                                                                                                              \
	_Static_assert(true, "takes the semicolon")

/* Before the first test of the program and after the last one: TEST_ALL(set_up, tear_down); */
#define TEST_ALL(set_up, tear_down)                                                                                    \
	TEST_CONSTRUCTOR(register_all)                                                                                 \
	{                                                                                                              \
		test_register_all(set_up, tear_down);                                                                  \
	}                                                                                                              \
	_Static_assert(true, "takes the semicolon")

/* Tests that several users do: another than root skips all of the program. TESTS_OF_ROOT; */
#define TESTS_OF_ROOT                                                                                                  \
	TEST_CONSTRUCTOR(register_root)                                                                                \
	{                                                                                                              \
		test_register_root();                                                                                  \
	}                                                                                                              \
	_Static_assert(true, "takes the semicolon")

/* For a main of the program's own. argv[1], if there is one, is the pattern, or --list. The exit status. */
int tests_run(int argc, char **argv);

/* For a main that calls tests_run_group: takes the pattern of argv[1]; true: that was --list, and is done. */
bool tests_are_listed(int argc, char **argv);

/* The tests of a group (NULL: those of TEST and TEST_WITH) under a title, between two functions (NULL: those of
 * TEST_ALL). How many failed. */
int tests_run_group(const char *title, const char *group, CMFixtureFunction set_up, CMFixtureFunction tear_down);

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
