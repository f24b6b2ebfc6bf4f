#include "cli/common/language.h"

#include <langinfo.h>
#include <libintl.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/translate.h"
#include "cli/common/beside.h"
#include "cli/common/catalogue.h"

enum { NAME_SIZE = 64 };

static const char domain[] = "loadline";

/* Relative to the program's folder: in a build folder, and installed. The second pair: of the programs that loadline
 * starts. */
static const char *const folders[] = {"po", "../share/locale", "../../po", "../../share/locale", NULL};

static struct ll_catalogue catalogue;

/* ---- translators ---- */

static const char *translate_by_libc(const char *text, const char *many, unsigned long count)
{
	return many ? dngettext(domain, text, many, count) : dgettext(domain, text);
}

static const char *translate_by_catalogue(const char *text, const char *many, unsigned long count)
{
	(void)many;
	(void)count;
	return ll_catalogue_find(&catalogue, text);
}

/* ---- the language ---- */

/* "": none is named. */
static const char *locale_name(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const char *value = getenv(variables[i]);
		if (value && *value)
			return value;
	}
	return "";
}

static bool is_english(const char *locale)
{
	return !*locale || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
}

static bool is_utf8(const char *locale)
{
	const char *codeset = strchr(locale, '.');
	size_t length = codeset ? strcspn(codeset, "@") : 0;
	return !codeset || (length == strlen(".UTF-8") && strncasecmp(codeset, ".UTF-8", length) == 0) ||
	       (length == strlen(".utf8") && strncasecmp(codeset, ".utf8", length) == 0);
}

/* Opens the texts of one language, "zh_CN" or "zh_CN.UTF-8". */
static bool open_language(const char *folder, const char *name, size_t length)
{
	char path[PATH_MAX + 2 * NAME_SIZE];
	length = strcspn(name, ".@:") < length ? strcspn(name, ".@:") : length;
	if (!length || length >= NAME_SIZE || memchr(name, '/', length))
		return false;
	snprintf(path, sizeof path, "%s/%.*s/LC_MESSAGES/%s.mo", folder, (int)length, name, domain);
	return ll_catalogue_open(&catalogue, path);
}

/* Of the languages that are asked for, opens the first that there is. English is what the program's texts are in: the
 * languages behind it are not wanted. */
static bool open_catalogue(const char *folder, const char *locale)
{
	const char *languages = getenv("LANGUAGE");
	for (const char *name = languages && *languages ? languages : locale; *name;) {
		size_t length = strcspn(name, ":");
		if (open_language(folder, name, length))
			return true;
		if (strncmp(name, "en", 2) == 0)
			return false;
		name += length + (name[length] == ':');
	}
	return false;
}

void ll_language_init(void)
{
	char folder[PATH_MAX];
	const char *locale = locale_name();
	if (is_english(locale) || !is_utf8(locale) || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		return;
	setlocale(LC_MESSAGES, "");
	if (ll_beside_find(folders, ".", folder) < 0)
		return;
	bindtextdomain(domain, folder);
	bind_textdomain_codeset(domain, "UTF-8");
	/* The translation of the empty text is the header of the C library's catalogue. */
	const char *no_text = "";
	if (*dgettext(domain, no_text))
		ll_translate_by(translate_by_libc);
	else if (open_catalogue(folder, locale))
		ll_translate_by(translate_by_catalogue);
}

void ll_language_leave(void)
{
	setlocale(LC_MESSAGES, "C");
	ll_translate_by(NULL);
}
