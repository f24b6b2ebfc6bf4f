#include "cli/common/language.h"

#include <fcntl.h>
#include <langinfo.h>
#include <libintl.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"

#define MAGIC UINT32_C(0x950412de)

/* The beginning of the file, in GNU gettext's manual, "The Format of GNU MO Files". */
struct header {
	uint32_t magic, revision, count;
	uint32_t texts, translations; /* where the two tables are: count rows each, the texts in strcmp's order */
};

struct row {
	uint32_t length, offset;
};

static const struct header *header_of(const struct ll_catalogue *catalogue)
{
	return (const void *)catalogue->bytes;
}

/* NULL: the table is not within the file. */
static const struct row *rows_at(const struct ll_catalogue *catalogue, uint32_t offset)
{
	uint64_t end = (uint64_t)offset + (uint64_t)header_of(catalogue)->count * sizeof(struct row);
	return offset % sizeof(uint32_t) == 0 && end <= catalogue->size ? (const void *)(catalogue->bytes + offset)
									: NULL;
}

static bool are_texts_inside(const struct ll_catalogue *catalogue, uint32_t offset)
{
	const struct row *rows = rows_at(catalogue, offset);
	bool is_good = rows;
	for (uint32_t i = 0; is_good && i < header_of(catalogue)->count; i++) {
		uint64_t end = (uint64_t)rows[i].offset + rows[i].length;
		is_good = end < catalogue->size && !catalogue->bytes[end];
	}
	return is_good;
}

static bool is_good(const struct ll_catalogue *catalogue)
{
	const struct header *header = header_of(catalogue);
	return header->magic == MAGIC && header->revision >> 16 == 0 && are_texts_inside(catalogue, header->texts) &&
	       are_texts_inside(catalogue, header->translations);
}

static bool map(struct ll_catalogue *catalogue, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < sizeof(struct header))
		return false;
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	*catalogue = (struct ll_catalogue){.bytes = bytes, .size = (size_t)st.st_size};
	return true;
}

bool ll_catalogue_open(struct ll_catalogue *catalogue, const char *path)
{
	*catalogue = (struct ll_catalogue){.bytes = NULL};
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && map(catalogue, fd) && !is_good(catalogue))
		ll_catalogue_close(catalogue);
	return catalogue->bytes;
}

void ll_catalogue_close(struct ll_catalogue *catalogue)
{
	if (catalogue->bytes)
		munmap((void *)(uintptr_t)catalogue->bytes, catalogue->size);
	*catalogue = (struct ll_catalogue){.bytes = NULL};
}

const char *ll_catalogue_find(const struct ll_catalogue *catalogue, const char *text)
{
	if (!catalogue->bytes)
		return NULL;
	const struct header *header = header_of(catalogue);
	const struct row *texts = rows_at(catalogue, header->texts);
	uint32_t first = 0, end = header->count;
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;
		int order = strcmp(text, catalogue->bytes + texts[middle].offset);
		if (order == 0)
			return catalogue->bytes + rows_at(catalogue, header->translations)[middle].offset;
		if (order < 0)
			end = middle;
		else
			first = middle + 1;
	}
	return NULL;
}

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
