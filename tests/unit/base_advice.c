#include "base/advice.h"

#include <stdlib.h>

#include "test.h"

static void expect(const char *option, const char *text, const char *expected)
{
	char said[400];
	if (option)
		setenv(LL_SIM_VARIABLE, option, 1);
	else
		unsetenv(LL_SIM_VARIABLE);
	ll_advice_copy(said, sizeof said, text);
	assert_string_equal(said, expected);
}

TEST(commands_have_the_option_that_the_user_gave)
{
	static const struct {
		const char *option, *text, *expected;
	} rows[] = {
	    {NULL, "see `loadline doctor`", "see `loadline doctor`"},
	    {"--sim", "see `loadline doctor`", "see `loadline --sim doctor`"},
	    {"--sim=h200x8", "see `loadline doctor`", "see `loadline --sim=h200x8 doctor`"},
	    {"--sim", "try 'loadline run --help'", "try 'loadline --sim run --help'"},
	    {"--sim", "start one: loadline mps start", "start one: loadline --sim mps start"},
	    {"--sim", "loadline probe --json", "loadline --sim probe --json"},
	    {"--sim", "eval \"$(loadline mps env)\"", "eval \"$(loadline --sim mps env)\""},
	    {"--sim", "`loadline trace -- loadline run -- x`", "`loadline --sim trace -- loadline --sim run -- x`"},
	    {"--sim", "`loadline mps stop`, or `loadline mps kill`",
	     "`loadline --sim mps stop`, or `loadline --sim mps kill`"},
	    {"--sim", "write 'loadline --sim COMMAND'", "write 'loadline --sim COMMAND'"},
	    {"--sim", "as root: nvidia-smi -c DEFAULT", "as root: loadline-simctl card all mode default"},
	    {NULL, "as root: nvidia-smi -c DEFAULT", "as root: nvidia-smi -c DEFAULT"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		expect(rows[i].option, rows[i].text, rows[i].expected);
}

TEST(what_is_no_command_stays)
{
	expect("--sim", "install all of loadline, and unset it", "install all of loadline, and unset it");
	expect("--sim", "another loadline is at work", "another loadline is at work");
	expect("--sim", "`loadlined`, `loadline-simctl show`", "`loadlined`, `loadline-simctl show`");
	expect("--sim", "'/usr/bin/loadline run'", "'/usr/bin/loadline run'");
	expect("--sim", "", "");
}

TEST(an_option_that_is_not_ours_is_not_printed)
{
	char longest[400];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	memcpy(longest, "--sim=", 6);
	expect("", "see `loadline doctor`", "see `loadline doctor`");
	expect("rm -rf", "see `loadline doctor`", "see `loadline doctor`");
	expect("--simple", "see `loadline doctor`", "see `loadline doctor`");
	expect(longest, "see `loadline doctor`", "see `loadline doctor`");
}

TEST(a_text_that_does_not_fit_is_cut)
{
	char said[20];
	setenv(LL_SIM_VARIABLE, "--sim=h200x8", 1);
	memset(said, 'x', sizeof said);
	assert_int_equal(ll_advice_copy(said, sizeof said, "`loadline doctor` tells"), 36);
	assert_string_equal(said, "`loadline --sim=h20");
	assert_int_equal(ll_advice_copy(said, 5, "1234567"), 7);
	assert_string_equal(said, "1234");
	ll_advice_copy(said, 1, "1234567");
	assert_string_equal(said, "");
}
