#include "base/utf8.h"

#include "base/strbuf.h"
#include "test.h"

static int use_locale(void **state)
{
	(void)state;
	ll_utf8_locale_init();
	return 0;
}

TEST(characters_are_told_from_bytes_that_are_none)
{
	static const struct {
		const char *text;
		size_t length;
		uint32_t character;
	} cases[] = {
	    {"", 0, LL_UTF8_BAD},
	    {"a", 1, 'a'},
	    {"é", 2, 0xe9},
	    {"名", 3, 0x540d},
	    {"🚀", 4, 0x1f680},
	    {"\xff", 1, LL_UTF8_BAD},
	    {"\x80x", 1, LL_UTF8_BAD},
	    {"\xe5\x90", 2, LL_UTF8_BAD},         /* not whole */
	    {"\xe5\x90x", 2, LL_UTF8_BAD},        /* the same, and something follows */
	    {"\xc0\xaf", 2, LL_UTF8_BAD},         /* '/' in too many bytes */
	    {"\xed\xa0\x80", 3, LL_UTF8_BAD},     /* half of a pair of UTF-16 */
	    {"\xf4\x90\x80\x80", 4, LL_UTF8_BAD}, /* beyond the last */
	    {"\xf8\x88\x80\x80\x80", 1, LL_UTF8_BAD},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t character = 0;
		assert_int_equal(ll_utf8_next(cases[i].text, &character), cases[i].length);
		assert_int_equal(character, cases[i].character);
	}
}

TEST(what_cannot_be_seen_is_not_printable)
{
	static const uint32_t seen[] = {' ', '~', 0xe9, 0x301, 0x5d0, 0xe01, 0xe34, 0x3042, 0x540d, 0xac00, 0x1f680};
	static const uint32_t unseen[] = {0,      '\t',   0x1b,   0x7f,   0x85,   0xad,    0x200b,
					  0x202e, 0x2028, 0x2066, 0xfeff, 0xfffe, 0xe0001, LL_UTF8_BAD};
	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
		assert_true(ll_utf8_is_printable(seen[i]));
	for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
		assert_false(ll_utf8_is_printable(unseen[i]));
}

TEST(text_is_cut_between_characters_by_its_columns)
{
	static const struct {
		const char *text;
		size_t columns;
		const char *shown;
		size_t used;
	} cases[] = {
	    {"train", 9, "train", 5},
	    {"train", 3, "tra", 3},
	    {"名字", 4, "名字", 4},
	    {"名字", 3, "名", 2},
	    {"名字", 1, "", 0},
	    {"ни", 1, "н", 1},
	    {"é", 1, "é", 1},
	    {"é", 1, "é", 1},
	    {"a\033b", 9, "a?b", 3},
	    {"\xff!", 9, "?!", 2},
	    {"名\xe5\xad", 9, "名?", 3},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
		assert_int_equal(ll_utf8_add(&out, cases[i].text, cases[i].columns), cases[i].used);
		assert_string_equal(out.buf, cases[i].shown);
		assert_true(ll_utf8_columns(cases[i].text) >= cases[i].used);
	}
	assert_int_equal(ll_utf8_columns("名字-1"), 6);
}

TEST(what_is_no_text_becomes_question_marks)
{
	static const struct {
		const char *text, *clean, *mended;
	} cases[] = {
	    {"plain", "plain", "plain"},
	    {"名字\n", "名字?", "名字\n"},
	    {"a\033[31mb", "a?[31mb", "a\033[31mb"},
	    {"caf\xe9 noir", "caf? noir", "caf? noir"},
	    {"名\xe5\xad", "名", "名"},
	    {"'名\xe5\xad': no", "'名?': no", "'名?': no"},
	    {"\xff\xfe", "??", "??"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[64];
		snprintf(text, sizeof text, "%s", cases[i].text);
		ll_utf8_clean(text);
		assert_string_equal(text, cases[i].clean);
		snprintf(text, sizeof text, "%s", cases[i].text);
		ll_utf8_mend(text);
		assert_string_equal(text, cases[i].mended);
	}
}

TEST_ALL(use_locale, NULL);
