/* The width of characters. The preloaded libraries contain only utf8.c, because the locale belongs to their program. */
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "base/strbuf.h"
#include "base/utf8.h"

struct range {
	uint32_t first, last;
};

/* Characters of two columns, for characters that the C library does not know. */
static const struct range wide[] = {
    {0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
};

static bool is_wide(uint32_t character)
{
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
		if (character >= wide[i].first && character <= wide[i].last)
			return true;
	}
	return false;
}

void ll_utf8_locale_init(void)
{
	bool is_utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (!is_utf8 && !setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "C");
}

size_t ll_utf8_width(uint32_t character)
{
	if (!ll_utf8_is_printable(character) || character < 0x80)
		return 1;
	int width = wcwidth((wchar_t)character);
	if (width < 0)
		return is_wide(character) ? 2 : 1;
	return (size_t)width;
}

size_t ll_utf8_columns(const char *text)
{
	size_t columns = 0, length;
	for (uint32_t character; (length = ll_utf8_next(text, &character)); text += length)
		columns += ll_utf8_width(character);
	return columns;
}

size_t ll_utf8_add(struct ll_strbuf *out, const char *text, size_t columns)
{
	size_t used = 0, length;
	for (uint32_t character; (length = ll_utf8_next(text, &character)); text += length) {
		size_t wanted = ll_utf8_width(character);
		if (used + wanted > columns)
			break;
		used += wanted;
		if (ll_utf8_is_printable(character))
			ll_strbuf_add(out, text, length);
		else
			ll_strbuf_addc(out, '?');
	}
	return used;
}
