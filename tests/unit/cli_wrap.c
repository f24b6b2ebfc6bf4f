/* Lines of help: where they end, in English and in Chinese. */
#include "cli/options/help_text.h"

#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "test.h"

static int use_locale(void **state)
{
	(void)state;
	ll_utf8_locale_init();
	return 0;
}

/* The lines' number; none is too wide, and none begins with this. */
static size_t check_lines(const char *text, const char *never_first)
{
	size_t count = 0;
	for (const char *line = text; *line; count++) {
		char copy[400];
		size_t length = strcspn(line, "\n");
		assert_true(length < sizeof copy);
		memcpy(copy, line, length);
		copy[length] = '\0';
		assert_true(ll_utf8_columns(copy) <= LL_WRAP_WIDTH);
		assert_false(count && strncmp(copy, never_first, strlen(never_first)) == 0);
		line += length + 1;
	}
	return count;
}

TEST(english_lines_end_at_blanks)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	ll_wrap(&out,
		"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen", 0,
		2);
	assert_string_equal(out.buf, "one two three four five six seven eight nine ten eleven twelve thirteen\n"
				     "  fourteen fifteen sixteen\n");
}

TEST(chinese_lines_end_between_characters_and_at_the_same_width)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	for (int i = 0; i < 60; i++)
		ll_strbuf_adds(&text, "显存");
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	ll_wrap(&out, text.buf, 0, 0);
	assert_int_equal(check_lines(out.buf, "-"), 4); /* 39 characters a line */
}

/* Wherever in the line the mark falls. */
TEST(no_line_begins_with_a_full_stop)
{
	for (int before = 30; before < 44; before++) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
		for (int i = 0; i < before; i++)
			ll_strbuf_adds(&text, "卡");
		ll_strbuf_adds(&text, "。租户 (见 `loadline status`) 等待");
		ll_wrap(&out, text.buf, 0, 0);
		check_lines(out.buf, "。");
		check_lines(out.buf, ")");
	}
}

TEST(a_command_is_not_broken_at_its_dashes)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	for (int i = 0; i < 36; i++)
		ll_strbuf_adds(&text, "卡");
	ll_strbuf_adds(&text, "用--mem-request保障");
	ll_wrap(&out, text.buf, 0, 0);
	assert_non_null(strstr(out.buf, "\n--mem-request保障\n"));
}

TEST_ALL(use_locale, NULL);
