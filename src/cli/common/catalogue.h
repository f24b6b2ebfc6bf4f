/*
 * catalogue.h - reads a file of translations that msgfmt made (GNU gettext's .mo format), for languages whose locale is
 * not installed.
 *
 * The C library's gettext needs an installed locale other than C. In C.UTF-8 it goes by LANGUAGE up to glibc 2.38 and
 * not any more from 2.39 on. A variable set for it would also be inherited by the programs that loadline starts.
 */
#ifndef LOADLINE_CLI_COMMON_CATALOGUE_H
#define LOADLINE_CLI_COMMON_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

struct ll_catalogue {
	const char *bytes; /* NULL: none is open */
	size_t size;
};

/* Maps the file. Returns false, and leaves no catalogue open, if it cannot be read, is not in this machine's byte
 * order, or is damaged. */
bool ll_catalogue_open(struct ll_catalogue *catalogue, const char *path);

/* Unmaps the file. Texts that were found in it are gone then. */
void ll_catalogue_close(struct ll_catalogue *catalogue);

/* Returns the translation of a text, and its first form if it has several. NULL: it has none. */
const char *ll_catalogue_find(const struct ll_catalogue *catalogue, const char *text);

#endif
