#include "cli/options/option.h"

#include "base/nearest.h"
#include "cli/options/command.h"
#include "test.h"

static const char *nearest_of(const char *word, const char *const *names)
{
	struct ll_nearest nearest = {.word = word};
	for (; *names; names++)
		ll_nearest_offer(&nearest, *names);
	return nearest.name;
}

TEST(a_letter_more_less_or_other_is_near)
{
	static const char *const names[] = {"target", NULL};
	assert_string_equal(nearest_of("targett", names), "target");
	assert_string_equal(nearest_of("targt", names), "target");
	assert_string_equal(nearest_of("tarket", names), "target");
	assert_string_equal(nearest_of("tagret", names), "target");
	assert_string_equal(nearest_of("rget", names), "target");
	assert_null(nearest_of("get", names));
	assert_null(nearest_of("targeting", names));
	assert_null(nearest_of("", names));
}

TEST(the_nearest_of_several_counts)
{
	static const char *const names[] = {"start", "status", "stop", NULL};
	assert_string_equal(nearest_of("stat", names), "start");
	assert_string_equal(nearest_of("statu", names), "status");
	assert_string_equal(nearest_of("stp", names), "stop");
}

TEST(a_short_word_is_not_near_to_whatever_is_short)
{
	static const char *const names[] = {"by", "run", NULL};
	assert_null(nearest_of("xx", names));
	assert_null(nearest_of("x", names));
	assert_string_equal(nearest_of("b", (const char *const[]){"b", NULL}), "b");
	assert_string_equal(nearest_of("bi", names), "by");
}

TEST(only_the_part_before_the_value_counts)
{
	struct ll_nearest nearest = {.word = "levl=warn", .length = 4};
	ll_nearest_offer(&nearest, "level");
	assert_string_equal(nearest.name, "level");
}

TEST(long_words_are_near_to_nothing)
{
	static const char *const names[] = {"abcdefghijklmnopqrstuvwxyzabcdefg", "status", NULL};
	assert_null(nearest_of("abcdefghijklmnopqrstuvwxyzabcdefg", names));
}
