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

/* Sets the language that the environment asks for. For main, after ll_utf8_locale_init, before there are threads. */
void ll_language_init(void);

/* Goes back to English, the C library's messages included, for output that scripts read, manual pages and completions.
 */
void ll_language_leave(void);

#endif
