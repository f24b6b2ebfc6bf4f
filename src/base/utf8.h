/*
 * utf8.h - text in UTF-8: its characters, whether they can be shown, and how wide they are.
 *
 * Names of tenants and programs are bytes that somebody else chose. They are shown as they are if they are UTF-8 and
 * printable. Any other byte or character is shown as '?'.
 */
#ifndef LOADLINE_BASE_UTF8_H
#define LOADLINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_strbuf;

/* In place of a character: a byte that does not belong to one. */
#define LL_UTF8_BAD UINT32_MAX

/* Sets LC_CTYPE as the environment wishes, or to C.UTF-8 if that wish is not UTF-8, so that the C library knows how
 * wide characters are. Numbers keep their decimal points. For main. */
void ll_utf8_locale_init(void);

/* Returns the length of the character at text, and the character; the length is 0 at the end of the text.
 * *ret_character LL_UTF8_BAD: this byte, or these bytes of a character that is not whole, are not UTF-8. */
size_t ll_utf8_next(const char *text, uint32_t *ret_character);

/* Whether the character can be seen, blanks included: no control character, none that only changes how others look. A
 * mark that is put on a letter is printable. */
bool ll_utf8_is_printable(uint32_t character);

/* Whether it is a blank, of whatever width. */
bool ll_utf8_is_blank(uint32_t character);

/* Returns the columns that a terminal needs for a character: 0, 1 or 2. */
size_t ll_utf8_width(uint32_t character);

/* Returns the columns that a terminal needs for the text, '?' included for what cannot be shown. */
size_t ll_utf8_columns(const char *text);

/* Adds as much of the text as fits in so many columns, in whole characters, with '?' for what cannot be shown. Returns
 * the columns that were used. */
size_t ll_utf8_add(struct ll_strbuf *out, const char *text, size_t columns);

/* Puts '?' in place of what cannot be shown. A character at the end that is not whole is cut off. */
void ll_utf8_clean(char *text);

/* The same for what is not UTF-8 alone: for text that was cut somewhere in the middle of a character. */
void ll_utf8_mend(char *text);

#endif
