#include "cli/options/wrap.h"

#include <stdbool.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"

static void add_blanks(struct ll_strbuf *out, size_t count)
{
	while (count--)
		ll_strbuf_addc(out, ' ');
}

size_t ll_wrap_paragraph(const char *text, const char **ret_next)
{
	const char *end = strstr(text, "\n\n");
	size_t length = end ? (size_t)(end - text) : strlen(text);
	*ret_next = text + length + (end ? 2 : 0);
	return length;
}

size_t ll_wrap_first_sentence(const char *text)
{
	const char *end = strstr(text, ". ");
	size_t length = end ? (size_t)(end - text) : strlen(text);
	if (!end && length && text[length - 1] == '.')
		length--;
	return length;
}

/* Punctuation that must not begin a line, and that must not end one, in Chinese text. */
static const char closing[] = "，。、；：！？）》」』】”’…,.;:!?)]}";
static const char opening[] = "（《「『【“‘([{";

static bool is_one_of(const char *list, const char *character, size_t length)
{
	size_t next;
	for (uint32_t unused; (next = ll_utf8_next(list, &unused)); list += next) {
		if (next == length && memcmp(list, character, length) == 0)
			return true;
	}
	return false;
}

/* Returns the length of the text up to the first place where a line may end: a blank, or the edge of a wide character.
 * *ret_columns: its width. */
static size_t find_word(const char *text, const char *end, size_t *ret_columns)
{
	const char *at = text;
	bool may_end = false;
	*ret_columns = 0;
	while (at < end && *at != ' ' && *at != '\n') {
		uint32_t character;
		size_t length = ll_utf8_next(at, &character), width = ll_utf8_width(character);
		bool is_closing = is_one_of(closing, at, length);
		if (at > text && !is_closing && (may_end || (width > 1 && !is_one_of(opening, at - length, length))))
			break;
		may_end = (width > 1 || is_closing) && !is_one_of(opening, at, length);
		*ret_columns += width;
		at += length;
	}
	return (size_t)(at - text);
}

static void add_filled(struct ll_strbuf *out, const char *text, size_t length, size_t column, size_t indent)
{
	size_t at = column;
	const char *end = text + length;
	for (const char *word = text; word < end;) {
		size_t columns, size = find_word(word, end, &columns);
		size_t blanks = word > text && (word[-1] == ' ' || word[-1] == '\n');
		if (word != text && at + blanks + columns > LL_WRAP_WIDTH) {
			ll_strbuf_addc(out, '\n');
			add_blanks(out, indent);
			at = indent;
		} else if (blanks) {
			ll_strbuf_addc(out, ' ');
			at++;
		}
		ll_strbuf_add(out, word, size);
		at += columns;
		word += size;
		word += word < end && (*word == ' ' || *word == '\n');
	}
	ll_strbuf_addc(out, '\n');
}

static void add_kept(struct ll_strbuf *out, const char *text, size_t length, size_t column, size_t indent)
{
	add_blanks(out, column < indent ? indent - column : 0);
	for (size_t i = 0; i < length; i++) {
		ll_strbuf_addc(out, text[i]);
		if (text[i] == '\n')
			add_blanks(out, indent);
	}
	ll_strbuf_addc(out, '\n');
}

void ll_wrap(struct ll_strbuf *out, const char *text, size_t column, size_t indent)
{
	while (*text) {
		const char *next;
		size_t length = ll_wrap_paragraph(text, &next);
		if (*text == ' ')
			add_kept(out, text, length, column, indent);
		else
			add_filled(out, text, length, column, indent);
		text = next;
		column = indent;
		if (*text) {
			ll_strbuf_addc(out, '\n');
			add_blanks(out, *text == ' ' ? 0 : indent);
			column = *text == ' ' ? 0 : indent;
		}
	}
}
