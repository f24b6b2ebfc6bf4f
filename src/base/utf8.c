#include "base/utf8.h"

#include <string.h>

struct range {
	uint32_t first, last;
};

/* Characters that are not visible or only change how others look (Unicode's classes Cf, Zl and Zp), and codes that are
 * no characters. */
static const struct range invisible[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},   {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0xfffe, 0xffff},
    {0x110bd, 0x110bd}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
};

static const struct range blanks[] = {
    {' ', ' '}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

#define IS_IN(table, character) is_in(table, sizeof(table) / sizeof(table)[0], character)

static bool is_in(const struct range *table, size_t count, uint32_t character)
{
	for (size_t i = 0; i < count; i++) {
		if (character >= table[i].first && character <= table[i].last)
			return true;
	}
	return false;
}

/* ---- characters ---- */

/* Returns the length that the first byte announces, and the smallest character of that length. 0: it is not a first
 * byte. */
static size_t length_of(unsigned char first, uint32_t *ret_bits, uint32_t *ret_least)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
	*ret_bits = length == 1 ? first : first & (0x7fU >> length);
	*ret_least = least[length];
	return first > 0xf4 ? 0 : length;
}

size_t ll_utf8_next(const char *text, uint32_t *ret_character)
{
	uint32_t character, least;
	size_t length = length_of((unsigned char)*text, &character, &least);
	*ret_character = LL_UTF8_BAD;
	if (!*text || !length)
		return *text ? 1 : 0;
	for (size_t i = 1; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		if ((byte & 0xc0) != 0x80)
			return i;
		character = character << 6 | (byte & 0x3f);
	}
	bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
	if (character < least || is_surrogate || character > 0x10ffff)
		return length;
	*ret_character = character;
	return length;
}

bool ll_utf8_is_printable(uint32_t character)
{
	return character != LL_UTF8_BAD && (character & 0xfffe) != 0xfffe && !IS_IN(invisible, character);
}

bool ll_utf8_is_blank(uint32_t character)
{
	return IS_IN(blanks, character);
}

/* ---- texts ---- */

/* Whether the text ends within this character. Its bytes so far are valid. */
static bool is_cut(const char *text, size_t length)
{
	uint32_t bits, least;
	return !text[length] && length_of((unsigned char)*text, &bits, &least) > length;
}

static void replace_unprintable(char *text, bool is_control_bad)
{
	char *out = text;
	size_t length;
	for (uint32_t character; (length = ll_utf8_next(text, &character)); text += length) {
		bool is_bad = character == LL_UTF8_BAD || (is_control_bad && !ll_utf8_is_printable(character));
		if (character == LL_UTF8_BAD && is_cut(text, length))
			break;
		if (is_bad)
			*out++ = '?';
		else
			memmove(out, text, length);
		out += is_bad ? 0 : length;
	}
	*out = '\0';
}

void ll_utf8_clean(char *text)
{
	replace_unprintable(text, true);
}

void ll_utf8_mend(char *text)
{
	replace_unprintable(text, false);
}

uint64_t ll_text_hash(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}
