#include "base/strbuf.h"

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
