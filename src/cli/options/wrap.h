/*
 * wrap.h - breaks running text into lines.
 *
 * A text consists of paragraphs with an empty line between ("\n\n"). A paragraph that begins with a blank keeps its
 * lines, for tables and command lines. Any other paragraph is filled up to the width. A line may also end between two
 * wide characters, as Chinese is written without blanks, but not before a mark such as a full stop.
 */
#ifndef LOADLINE_CLI_OPTIONS_WRAP_H
#define LOADLINE_CLI_OPTIONS_WRAP_H

#include <stddef.h>

struct ll_strbuf;

enum { LL_WRAP_WIDTH = 79 };

/*
 * Appends text, broken at LL_WRAP_WIDTH, and a newline. The first line starts at column. Every further line, and each
 * line of a kept paragraph, begins with indent blanks.
 */
void ll_wrap(struct ll_strbuf *out, const char *text, size_t column, size_t indent);

/* Returns the length of the paragraph at text. *ret_next: the start of the next paragraph, or the NUL at the end. */
size_t ll_wrap_paragraph(const char *text, const char **ret_next);

/* Returns the length of the first sentence without its full stop. Completion menus show that sentence. */
size_t ll_wrap_first_sentence(const char *text);

#endif
