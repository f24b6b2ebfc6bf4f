/*
 * translate.h - the language of the texts that loadline writes for users.
 *
 * The program `loadline` sets a translator (cli/common/language.h). Without one, as in the preloaded libraries,
 * loadlined and the monitors, every text stays in English.
 *
 * ll_err_set, ll_err_wrap, ll_err_hint and ll_log translate their format themselves. Other texts for users are written
 * as _("text"). A text in a static table is marked by N_("text"), and translated when it is printed. Texts that scripts
 * read are never translated: JSON, CSV, metrics, the words of options.
 */
#ifndef LOADLINE_BASE_TRANSLATE_H
#define LOADLINE_BASE_TRANSLATE_H

#include <stdbool.h>

/* Returns the translation of a text, or the text itself if there is none. The text is in English and lives as long as
 * the program does. A format keeps the same conversions: `msgfmt --check` compares them. */
const char *ll_translate(const char *text) __attribute__((format_arg(1)));

/* The same for a text that depends on a count: "%zu card", "%zu cards". */
const char *ll_translate_count(const char *one, const char *many, unsigned long count)
    __attribute__((format_arg(1), format_arg(2)));

/* Translates: many is NULL for a text without a count. Returns NULL if it has no translation. */
typedef const char *(*ll_translator_fn)(const char *text, const char *many, unsigned long count);

/* Sets the translator; NULL: English. No other thread may write texts at the same time. */
void ll_translate_by(ll_translator_fn translator);

/* Whether there is a translator. */
bool ll_is_translated(void);

#define _(text) ll_translate(text)
#define N_(text) text

#endif
