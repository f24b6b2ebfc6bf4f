#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

TEST(empty_buffer_is_a_valid_string)
{
	struct ll_strbuf sb = LL_STRBUF_INIT;
	assert_string_equal(sb.buf, "");
	ll_strbuf_adds(&sb, "");
	ll_strbuf_reset(&sb);
	assert_string_equal(sb.buf, "");
	ll_strbuf_fini(&sb);
}

TEST(adding_grows_and_keeps_what_was_there)
{
	LL_SCOPE_STRBUF struct ll_strbuf sb = LL_STRBUF_INIT;
	for (int i = 0; i < 1000; i++)
		ll_strbuf_addf(&sb, "%03d,", i);
	assert_int_equal(sb.length, 4000);
	assert_int_equal(strlen(sb.buf), 4000);
	assert_int_equal(strncmp(sb.buf + 3996, "999,", 5), 0);
	ll_strbuf_addc(&sb, '!');
	ll_strbuf_add(&sb, "a\0b", 3);
	assert_int_equal(sb.length, 4004);
	assert_int_equal(memcmp(sb.buf + 4000, "!a\0b", 5), 0);
}

TEST(detach_hands_the_string_over)
{
	struct ll_strbuf sb = LL_STRBUF_INIT;
	ll_strbuf_adds(&sb, "mine");
	char *text = ll_strbuf_detach(&sb);
	assert_string_equal(text, "mine");
	free(text);
	assert_string_equal(sb.buf, "");
	text = ll_strbuf_detach(&sb);
	assert_string_equal(text, "");
	free(text);
}

TEST(failure_sticks_until_reset)
{
	struct ll_strbuf sb = LL_STRBUF_INIT;
	ll_strbuf_adds(&sb, "kept");
	ll_strbuf_add(&sb, "x", SIZE_MAX);
	assert_true(sb.failed);
	ll_strbuf_adds(&sb, "dropped");
	assert_string_equal(sb.buf, "kept");
	ll_strbuf_reset(&sb);
	assert_false(sb.failed);
	ll_strbuf_add(&sb, "x", SIZE_MAX);
	assert_null(ll_strbuf_detach(&sb));
}

TEST(text_for_xml_has_no_character_that_ends_an_element_or_an_attribute)
{
	struct ll_strbuf sb = LL_STRBUF_INIT;
	ll_strbuf_add_escaped(&sb, "a<b>&\"c\"'d'\n\x01\x1f.");
	assert_string_equal(sb.buf, "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;   .");
	ll_strbuf_reset(&sb);
	ll_strbuf_add_escaped(&sb, "\xe5\xbc\xa0 &amp;");
	assert_string_equal(sb.buf, "\xe5\xbc\xa0 &amp;amp;");
	ll_strbuf_fini(&sb);
}

TEST(a_text_for_csv_is_quoted_and_no_spreadsheet_takes_it_for_a_formula)
{
	static const char *const pairs[][2] = {
	    {"train", "\"train\""},
	    {"a \"b\", c", "\"a \"\"b\"\", c\""},
	    {"a=b", "\"a=b\""},
	    {"", "\"\""},
	    {" ", "\" \""},
	    {"=1+1", "\"'=1+1\""},
	    {"+1", "\"'+1\""},
	    {"-1", "\"'-1\""},
	    {"@sum", "\"'@sum\""},
	    {" =1", "\"' =1\""},
	    {"\t\r\n=1", "\"'\t\r\n=1\""},
	    {"\u3000=1", "\"'\u3000=1\""},             /* ideographic space */
	    {"\u00a0\u200b=1", "\"'\u00a0\u200b=1\""}, /* no-break space, zero width space */
	    {"\uff1d1", "\"'\uff1d1\""},               /* full-width = + - @ */
	    {"\uff0b1", "\"'\uff0b1\""},
	    {"\uff0d1", "\"'\uff0d1\""},
	    {"\uff20a", "\"'\uff20a\""},
	    {"\ufe661", "\"'\ufe661\""}, /* small = */
	    {" \u3000\uff1d1", "\"' \u3000\uff1d1\""},
	    {"\u540d\u5b57", "\"\u540d\u5b57\""},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct ll_strbuf sb = LL_STRBUF_INIT;
		ll_strbuf_add_csv(&sb, pairs[i][0]);
		assert_string_equal(sb.buf, pairs[i][1]);
		ll_strbuf_fini(&sb);
	}
}

TEST(a_file_is_added_as_a_whole_or_refused)
{
	char path[] = "/tmp/loadline-strbuf.XXXXXX";
	static char text[100000];
	struct ll_strbuf sb = LL_STRBUF_INIT;
	int fd = mkstemp(path);
	memset(text, 'x', sizeof text);
	assert_int_equal(write(fd, text, sizeof text), sizeof text);
	close(fd);
	assert_int_equal(ll_strbuf_add_file(&sb, AT_FDCWD, path, sizeof text), 0);
	assert_int_equal(sb.length, sizeof text);
	ll_strbuf_reset(&sb);
	assert_int_equal(ll_strbuf_add_file(&sb, AT_FDCWD, path, sizeof text - 1), -E2BIG);
	unlink(path);
	assert_int_equal(ll_strbuf_add_file(&sb, AT_FDCWD, path, 1), -ENOENT);
	assert_int_equal(ll_strbuf_add_file(&sb, AT_FDCWD, "/", 1), -EISDIR);
	ll_strbuf_reset(&sb);
	assert_int_equal(ll_strbuf_add_file(&sb, AT_FDCWD, "/proc/self/stat", 4096), 0);
	assert_true(sb.length > 0);
	ll_strbuf_fini(&sb);
}
