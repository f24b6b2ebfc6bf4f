#include <math.h>

#include "cli/common/table.h"
#include "test.h"

struct line {
	uint64_t number, bytes;
	double share;
	bool has_time;
	const char *user, *why;
	json_t *cards;
};

static const struct ll_row_column columns[] = {
    {.heading = "job", .key = "number", LL_ROW_NUMBER(struct line, number)},
    {.heading = "user", .key = "user", LL_ROW_TEXT(struct line, user), .least = 4},
    {.heading = "memory", .key = "memory_bytes", LL_ROW_BYTES(struct line, bytes), .may_lack = true},
    {.key = "share", LL_ROW_REAL(struct line, share), .decimals = 1},
    {.key = "has_time", LL_ROW_FLAG(struct line, has_time)},
    {.key = "cards", LL_ROW_JSON(struct line, cards)},
    {.heading = "why", .key = "why", LL_ROW_TEXT(struct line, why), .may_lack = true, .least = 12, .is_second = true},
    LL_ROW_END,
};

static const struct line lines[] = {
    {.number = 7, .bytes = UINT64_C(16) << 30, .share = 12.5, .has_time = true, .user = "ann", .why = ""},
    {.number = 12, .share = NAN, .user = "\xe5\xbc\xa0\xe4\xbc\x9f", .why = "guarantee of research"},
};

static void assert_table(size_t width, const char *expected)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	ll_rows_add_table(columns, lines, sizeof *lines, 2, width, &out);
	assert_string_equal(out.buf, expected);
}

TEST(a_table_has_the_columns_with_a_heading)
{
	assert_table(0, "job  user  memory  why\n"
			"7    ann   16 GiB  -\n"
			"12   \xe5\xbc\xa0\xe4\xbc\x9f  -       guarantee of research\n");
}

TEST(a_long_reason_is_on_a_line_of_its_own_where_there_is_one)
{
	assert_table(28, "job  user  memory\n"
			 "  why\n"
			 "7    ann   16 GiB\n"
			 "12   \xe5\xbc\xa0\xe4\xbc\x9f  -\n"
			 "  guarantee of research\n");
}

TEST(json_has_the_columns_with_a_key_in_their_order)
{
	struct line line = lines[0];
	line.cards = json_pack("[i]", 3);
	json_t *object = ll_row_json(columns, &line);
	char *text = json_dumps(object, JSON_COMPACT);
	assert_string_equal(text, "{\"number\":7,\"user\":\"ann\",\"memory_bytes\":17179869184,\"share\":12.5,"
				  "\"has_time\":true,\"cards\":[3],\"why\":null}");
	free(text);
	json_decref(object);
	object = ll_row_json(columns, &lines[1]);
	text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	assert_string_equal(text, "{\"number\":12,\"user\":\"\\u5F20\\u4F1F\",\"memory_bytes\":null,\"share\":null,"
				  "\"has_time\":false,\"cards\":null,\"why\":\"guarantee of research\"}");
	free(text);
	json_decref(object);
}

static void assert_user_in_csv(const char *user, const char *expected)
{
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT, want = LL_STRBUF_INIT;
	struct line line = lines[0];
	line.user = user;
	ll_rows_add_csv(columns, &line, sizeof line, 1, &out);
	ll_strbuf_addf(&want, "number,user,memory_bytes,share,has_time,why\n7,%s,17179869184,12.5,true,\n", expected);
	assert_string_equal(out.buf, want.buf);
}

TEST(csv_quotes_texts_and_keeps_a_spreadsheet_from_reading_formulas)
{
	assert_user_in_csv("an\"n", "\"an\"\"n\"");
	assert_user_in_csv("=1+1", "\"'=1+1\"");
	assert_user_in_csv(" \t@x", "\"' \t@x\"");
	assert_user_in_csv("\xef\xbc\x9d"
			   "1",
			   "\"'\xef\xbc\x9d"
			   "1\"");
	assert_user_in_csv("\xe3\x80\x80-1", "\"'\xe3\x80\x80-1\"");
	assert_user_in_csv("a=1", "\"a=1\"");
}
