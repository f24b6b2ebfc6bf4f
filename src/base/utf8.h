/*
 * utf8.h - UTF-8 text: its characters, whether they are printable, and their width.
 *
 * Names of tenants and programs are bytes from other programs. Printable UTF-8 is shown unchanged. Any other byte or
 * character is shown as '?'.
 */
#ifndef LOADLINE_BASE_UTF8_H
#define LOADLINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_strbuf;

/* In place of a character: a byte that is not part of one. */
#define LL_UTF8_BAD UINT32_MAX

/* Sets LC_CTYPE as the environment wishes, or to C.UTF-8 if that wish is not UTF-8. The C library then knows the width
 * of characters. Numbers keep their decimal points. main calls it. */
void ll_utf8_locale_init(void);

/* Returns the length of the character at text, and the character; the length is 0 at the end of the text.
 * *ret_character LL_UTF8_BAD: the byte, or the bytes of an incomplete character, are not UTF-8. */
size_t ll_utf8_next(const char *text, uint32_t *ret_character);

/* Whether the character is visible, or a blank. Control characters, and characters that only change how others look,
 * are not. A combining mark is printable. */
bool ll_utf8_is_printable(uint32_t character);

/* Whether the character is a blank of any width. */
bool ll_utf8_is_blank(uint32_t character);

/* Returns the columns that a terminal needs for a character: 0, 1 or 2. */
size_t ll_utf8_width(uint32_t character);

/* Returns the columns that a terminal needs for the text. An unprintable character counts as '?'. */
size_t ll_utf8_columns(const char *text);

/* Adds as many whole characters of the text as fit into the columns. An unprintable character becomes '?'. Returns the
 * used columns. */
size_t ll_utf8_add(struct ll_strbuf *out, const char *text, size_t columns);

/* Replaces unprintable characters by '?'. An incomplete character at the end is cut off. */
void ll_utf8_clean(char *text);

/* Replaces only bytes that are not UTF-8, for a text that was cut within a character. */
void ll_utf8_mend(char *text);

/* The hash function FNV-1a. */
uint64_t ll_text_hash(const char *text);

#endif
