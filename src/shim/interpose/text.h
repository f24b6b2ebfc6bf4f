/*
 * text.h - comparing strings without libc.
 *
 * A sanitizer's runtime in the program looks up libc's functions by dlsym while it starts, and its own versions of
 * them, which the program and we would call, do not work until it has. So nothing on the way through dlsym may call
 * one.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_TEXT_H
#define LOADLINE_SHIM_INTERPOSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* What follows in text after prefix; NULL when it does not begin so. */
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
