/*
 * translate.h - the language of the sentences that loadline writes for people.
 *
 * The program `loadline` names a translator (cli/common/language.h). Without one, as in the preloaded libraries,
 * loadlined and the monitors, every text stays as it is, in English.
 *
 * ll_err_set, ll_err_wrap, ll_err_hint and ll_log translate their format themselves. Other text for people is written
 * as
 * _("text"). A text in a static table is marked by N_("text"), and translated when it is printed. Never translated:
 * JSON, CSV, metrics, the words of options, and whatever else a script reads.
 */
#ifndef LOADLINE_BASE_TRANSLATE_H
#define LOADLINE_BASE_TRANSLATE_H

#include <stdbool.h>

/* Returns the translation of a text, which is in English and lives as long as the program does; the text itself if
 * there is none. A format stays a format with the same conversions: `msgfmt --check` compares them. */
const char *ll_translate(const char *text) __attribute__((format_arg(1)));

/* The same for a text that depends on a count: "%zu card", "%zu cards". */
const char *ll_translate_count(const char *one, const char *many, unsigned long count)
    __attribute__((format_arg(1), format_arg(2)));

/* Translates: many is NULL for a text without a count. Returns NULL if it has no translation. */
typedef const char *(*ll_translator_fn)(const char *text, const char *many, unsigned long count);

/* Sets the translator; NULL: English. Not safe beside other threads that write text. */
void ll_translate_by(ll_translator_fn translator);

/* Whether there is a translator. */
bool ll_is_translated(void);

#define _(text) ll_translate(text)
#define N_(text) text

#endif
