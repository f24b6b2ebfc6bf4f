#include "cli/options/nearest.h"

#include "cli/options/command.h"
#include "test.h"

static const char *nearest_of(const char *word, const char *const *names)
{
	struct ll_nearest nearest = {.word = word};
	for (; *names; names++)
		ll_nearest_offer(&nearest, *names);
	return nearest.name;
}

static void a_letter_more_less_or_other_is_near(void **state)
{
	static const char *const names[] = {"target", NULL};
	(void)state;
	assert_string_equal(nearest_of("targett", names), "target");
	assert_string_equal(nearest_of("targt", names), "target");
	assert_string_equal(nearest_of("tarket", names), "target");
	assert_string_equal(nearest_of("tagret", names), "target");
	assert_string_equal(nearest_of("rget", names), "target");
	assert_null(nearest_of("get", names));
	assert_null(nearest_of("targeting", names));
	assert_null(nearest_of("", names));
}

static void the_nearest_of_several_counts(void **state)
{
	static const char *const names[] = {"start", "status", "stop", NULL};
	(void)state;
	assert_string_equal(nearest_of("stat", names), "start");
	assert_string_equal(nearest_of("statu", names), "status");
	assert_string_equal(nearest_of("stp", names), "stop");
}

static void a_short_word_is_not_near_to_whatever_is_short(void **state)
{
	static const char *const names[] = {"by", "run", NULL};
	(void)state;
	assert_null(nearest_of("xx", names));
	assert_null(nearest_of("x", names));
	assert_string_equal(nearest_of("b", (const char *const[]){"b", NULL}), "b");
	assert_string_equal(nearest_of("bi", names), "by");
}

static void only_the_part_before_the_value_counts(void **state)
{
	(void)state;
	struct ll_nearest nearest = {.word = "levl=warn", .length = 4};
	ll_nearest_offer(&nearest, "level");
	assert_string_equal(nearest.name, "level");
}

static void long_words_are_near_to_nothing(void **state)
{
	static const char *const names[] = {"abcdefghijklmnopqrstuvwxyzabcdefg", "status", NULL};
	(void)state;
	assert_null(nearest_of("abcdefghijklmnopqrstuvwxyzabcdefg", names));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_letter_more_less_or_other_is_near),
	    cmocka_unit_test(the_nearest_of_several_counts),
	    cmocka_unit_test(a_short_word_is_not_near_to_whatever_is_short),
	    cmocka_unit_test(only_the_part_before_the_value_counts),
	    cmocka_unit_test(long_words_are_near_to_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
