#include "base/translate.h"

#include <stddef.h>

static ll_translator_fn current;

void ll_translate_by(ll_translator_fn translator)
{
	current = translator;
}

bool ll_is_translated(void)
{
	return current;
}

const char *ll_translate(const char *text)
{
	const char *translated = current && *text ? current(text, NULL, 1) : NULL;
	return translated ? translated : text;
}

const char *ll_translate_count(const char *one, const char *many, unsigned long count)
{
	const char *translated = current ? current(one, many, count) : NULL;
	return translated ? translated : count == 1 ? one : many;
}
