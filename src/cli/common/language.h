/*
 * language.h - the language of loadline's help and messages, by gettext: domain `loadline`, texts in po/.
 *
 * The language is the one of LC_ALL, LC_MESSAGES or LANG, whichever is set first; LANGUAGE goes before it, unless it is
 * C or POSIX. The locale need not be installed: LANG=zh_CN.UTF-8 alone is enough, and so is LANG=C.UTF-8 with
 * LANGUAGE=zh_CN. A locale that is not UTF-8 (zh_CN.GBK) gets English.
 *
 * The translations are searched beside the program: po/ in the build folder, else ../share/locale of an installation.
 * If there are none, as after a build without gettext, everything is in English.
 *
 * Of the locale only LC_CTYPE (base/utf8.h) and LC_MESSAGES are set: numbers never change.
 */
#ifndef LOADLINE_CLI_COMMON_LANGUAGE_H
#define LOADLINE_CLI_COMMON_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Sets the language that the environment asks for. For main, after ll_utf8_locale_init, before there are threads. */
void ll_language_init(void);

/* Goes back to English, the C library's messages included, for output that scripts read, manual pages and completions.
 */
void ll_language_leave(void);

/*
 * Reads a file of translations that msgfmt made (GNU gettext's .mo format), for languages whose locale is
 * not installed.
 *
 * The C library's gettext needs an installed locale other than C. In C.UTF-8 it goes by LANGUAGE up to glibc 2.38 and
 * not any more from 2.39 on. A variable set for it would also be inherited by the programs that loadline starts.
 */

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
