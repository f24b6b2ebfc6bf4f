/*
 * wrap.h - running text for people.
 *
 * Text is paragraphs separated by one blank line ("\n\n"). A paragraph that begins with a blank is kept line by line,
 * for tables and command lines; any other is one long line that is broken where it fits.
 */
#ifndef LOADLINE_CLI_OPTIONS_WRAP_H
#define LOADLINE_CLI_OPTIONS_WRAP_H

#include <stddef.h>

struct ll_strbuf;

enum { LL_WRAP_WIDTH = 79 };

/*
 * Appends text, broken at LL_WRAP_WIDTH. The cursor is at column; every further line, and each line of a kept
 * paragraph, begins with indent blanks. A newline ends the text.
 */
void ll_wrap(struct ll_strbuf *out, const char *text, size_t column, size_t indent);

/* Length of the paragraph at text, and in *ret_next where the next one begins (at the NUL after the last one). */
size_t ll_wrap_paragraph(const char *text, const char **ret_next);

/* Length of the first sentence of text, without its full stop: what fits a completion menu. */
size_t ll_wrap_first_sentence(const char *text);

#endif
