/* By what a program is known again. */
#include "protocol/program.h"
#include "test.h"

#define WORDS(...) ((char *const[]){__VA_ARGS__, NULL})

TEST(a_program_is_its_executable_and_its_arguments)
{
	uint64_t key = ll_program_key("/usr/bin/python3", WORDS("python", "train.py", "--lr", "1"));
	assert_true(key != 0);
	assert_true(key == ll_program_key("/usr/bin/python3", WORDS("/usr/bin/python", "train.py", "--lr", "1")));
	assert_true(key != ll_program_key("/usr/bin/python4", WORDS("python", "train.py", "--lr", "1")));
	assert_true(key != ll_program_key("/usr/bin/python3", WORDS("python", "train.py", "--lr", "2")));
	assert_true(key != ll_program_key("/usr/bin/python3", WORDS("python", "train.py", "--lr1")));
	assert_true(key != ll_program_key("/usr/bin/python3", WORDS("python", "train.py", "--lr", "1", "")));
}

static void named(const char *expected, char *const *words)
{
	char name[LL_PROGRAM_NAME_SIZE];
	ll_program_name(words, name);
	assert_string_equal(name, expected);
}

TEST(it_is_named_by_its_command_and_its_first_operand)
{
	named("train", WORDS("./train"));
	named("python3 train.py", WORDS("/usr/bin/python3", "-u", "/home/me/train.py", "--lr", "1"));
	named("python3 名字.py", WORDS("python3", "名字.py"));
	named("sh a?b", WORDS("sh", "-c", "a\tb"));
	named("x 123456789012345678901234567890123456789012345",
	      WORDS("x", "123456789012345678901234567890123456789012345678"));
}

TEST(its_limits_belong_to_it_but_the_way_does_not)
{
	const struct ll_limits none = {0};
	uint64_t key = ll_program_under(77, &none);
	assert_true(key && key != 77);
	assert_true(!ll_program_under(0, &none));
	assert_true(key ==
		    ll_program_under(77, &(struct ll_limits){.weight_permille = 1000, .slowdown_permille = 1300}));
	assert_true(key == ll_program_under(77, &(struct ll_limits){.space_permille = 1000})); /* all SMs */
	assert_true(key == ll_program_under(77, &(struct ll_limits){.memory_bytes = 1 << 30}));
	assert_true(key != ll_program_under(77, &(struct ll_limits){.weight_permille = 2000}));
	assert_true(key != ll_program_under(77, &(struct ll_limits){.priority = LL_LIMIT_CLASS_LOW}));
	assert_true(key != ll_program_under(77, &(struct ll_limits){.slowdown_permille = 1500}));
	uint64_t capped = ll_program_under(77, &(struct ll_limits){.compute_permille = 250});
	assert_true(key != capped);
	assert_true(capped == ll_program_under(77, &(struct ll_limits){.space_permille = 250}));
}

TEST(several_programs_have_no_order)
{
	uint64_t one[] = {3, 1, 2}, other[] = {2, 3, 1}, less[] = {2, 3}, unknown[] = {2, 0, 3};
	uint64_t key = ll_programs_key(one, 3);
	assert_true(key != 0);
	assert_true(key == ll_programs_key(other, 3));
	assert_true(key != ll_programs_key(less, 2));
	assert_true(!ll_programs_key(unknown, 3) && !ll_programs_key(one, 0));
}
