#include "cli/options/wrap.h"

#include <string.h>

#include "base/strbuf.h"

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

static void add_filled(struct ll_strbuf *out, const char *text, size_t length, size_t column, size_t indent)
{
	size_t at = column;
	const char *end = text + length;
	for (const char *word = text; word < end;) {
		size_t size = strcspn(word, " \n");
		if (size > (size_t)(end - word))
			size = (size_t)(end - word);
		if (word != text && at + 1 + size > LL_WRAP_WIDTH) {
			ll_strbuf_addc(out, '\n');
			add_blanks(out, indent);
			at = indent;
		} else if (word != text) {
			ll_strbuf_addc(out, ' ');
			at++;
		}
		ll_strbuf_add(out, word, size);
		at += size;
		word += size + 1;
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
