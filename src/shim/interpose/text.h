/*
 * text.h - compares strings without libc.
 *
 * A sanitizer's runtime looks up libc's functions by dlsym while it starts. Its own versions of them, which the program
 * and this library would call, do not work before the start is over. So no function on the way through dlsym may call
 * libc.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_TEXT_H
#define LOADLINE_SHIM_INTERPOSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns what follows the prefix in text; NULL: text does not begin with the prefix. */
static inline const char *ll_text_after(const char *text, const char *prefix)
{
	while (*prefix) {
		if (*text++ != *prefix++)
			return NULL;
	}
	return text;
}

static inline bool ll_text_is_same(const char *a, const char *b)
{
	const char *rest = ll_text_after(a, b);
	return rest && !*rest;
}

#endif
