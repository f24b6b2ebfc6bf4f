#include "base/strbuf.h"

#include "base/utf8.h"

void ll_strbuf_add_escaped(struct ll_strbuf *sb, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			ll_strbuf_adds(sb, "&amp;");
			break;
		case '<':
			ll_strbuf_adds(sb, "&lt;");
			break;
		case '>':
			ll_strbuf_adds(sb, "&gt;");
			break;
		case '"':
			ll_strbuf_adds(sb, "&quot;");
			break;
		case '\'':
			ll_strbuf_adds(sb, "&#39;");
			break;
		default:
			ll_strbuf_addc(sb, (unsigned char)*text < ' ' ? ' ' : *text);
		}
	}
}

/* The full-width and the small forms of =, +, - and @ begin a formula where Chinese and Japanese are written. */
static bool begins_formula(uint32_t character)
{
	static const uint32_t characters[] = {'=',    '+',    '-',    '@',    0x2212, 0xfe62, 0xfe63,
					      0xfe66, 0xfe6b, 0xff0b, 0xff0d, 0xff1d, 0xff20};
	for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
		if (character == characters[i])
			return true;
	}
	return false;
}

static bool is_formula(const char *text)
{
	uint32_t character;
	size_t length;
	while ((length = ll_utf8_next(text, &character)) &&
	       (ll_utf8_is_blank(character) || !ll_utf8_is_printable(character)))
		text += length;
	return length && begins_formula(character);
}

void ll_strbuf_add_csv(struct ll_strbuf *sb, const char *text)
{
	ll_strbuf_addc(sb, '"');
	if (is_formula(text))
		ll_strbuf_addc(sb, '\'');
	for (; *text; text++) {
		if (*text == '"')
			ll_strbuf_addc(sb, '"');
		ll_strbuf_addc(sb, *text);
	}
	ll_strbuf_addc(sb, '"');
}
