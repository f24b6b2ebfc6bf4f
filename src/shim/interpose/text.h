/*
 * text.h - compares strings without libc.
 *
 * While a sanitizer's runtime starts, it looks up libc's functions by dlsym. The sanitizer's own versions of these
 * functions replace libc's for the program and this library, and they do not work before the start is complete. So no
 * function that dlsym uses may call libc.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_TEXT_H
#define LOADLINE_SHIM_INTERPOSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the rest of the text after the prefix; NULL: text does not begin with the prefix. */
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
