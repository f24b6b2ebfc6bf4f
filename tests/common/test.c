/* The tests of a program, in the order of its files' lines, and how they are run. */
#include "test.h"

#include <errno.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static struct {
	struct registered_test *first;
	CMFixtureFunction each_set_up, each_tear_down, all_set_up, all_tear_down;
	bool are_of_root;
} tests;

/* Constructors run in any order: a test goes before the first of its file that is further down. */
void test_register(struct registered_test *test)
{
	struct registered_test **at = &tests.first;
	while (*at && !(strcmp((*at)->file, test->file) == 0 && (*at)->line > test->line))
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

void test_register_each(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	tests.each_set_up = set_up;
	tests.each_tear_down = tear_down;
}

void test_register_all(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	tests.all_set_up = set_up;
	tests.all_tear_down = tear_down;
}

static bool is_in(const struct registered_test *test, const char *group)
{
	return group ? test->group && strcmp(test->group, group) == 0 : !test->group;
}

static struct CMUnitTest with_fixture(const struct registered_test *test)
{
	struct CMUnitTest unit = test->unit;
	if (!test->has_fixture) {
		unit.setup_func = tests.each_set_up;
		unit.teardown_func = tests.each_tear_down;
	}
	return unit;
}

void test_register_root(void)
{
	tests.are_of_root = true;
}

int tests_run_group(const char *title, const char *group, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	size_t count = 0, room = 0;
	for (const struct registered_test *test = tests.first; test; test = test->next)
		room++;
	struct CMUnitTest *units = calloc(room + 1, sizeof *units);
	if (!units)
		return 1;
	for (const struct registered_test *test = tests.first; test; test = test->next)
		if (is_in(test, group))
			units[count++] = with_fixture(test);
	int failed = _cmocka_run_group_tests(title, units, count, set_up ? set_up : tests.all_set_up,
					     tear_down ? tear_down : tests.all_tear_down);
	free(units);
	return failed;
}

bool tests_are_listed(int argc, char **argv)
{
	bool is_list = argc > 1 && strcmp(argv[1], "--list") == 0;
	if (argc > 1 && !is_list)
		cmocka_set_test_filter(argv[1]);
	for (const struct registered_test *test = is_list ? tests.first : NULL; test; test = test->next)
		puts(test->unit.name);
	return is_list;
}

int tests_run(int argc, char **argv)
{
	if (tests_are_listed(argc, argv))
		return 0;
	if (tests.are_of_root && geteuid() != 0) {
		puts("skipped: only root can be two users");
		return SKIPPED;
	}
	return tests_run_group(program_invocation_short_name, NULL, NULL, NULL);
}
