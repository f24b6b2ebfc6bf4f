#include "cli/limits/library.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/strbuf.h"

enum { WORDS_SIZE = 65536, WORDS = 256 };

static const char library_name[] = "libloadline-cuda.so";

static bool is_library(const char *path, size_t length)
{
	size_t name = sizeof library_name - 1;
	return length >= name && memcmp(path + length - name, library_name, name) == 0;
}

/* The list without the library. Returns whether it was in it. */
static bool leave_out(const char *list, struct ll_strbuf *ret_rest)
{
	bool was_there = false;
	while (*list) {
		size_t length = strcspn(list, ": ");
		if (is_library(list, length))
			was_there = true;
		else if (length)
			ll_strbuf_addf(ret_rest, "%s%.*s", ret_rest->length ? ":" : "", (int)length, list);
		list += length + (list[length] != '\0');
	}
	return was_there;
}

/* This program's words, from what the kernel keeps. Returns false if they are too many. */
static bool read_words(char text[WORDS_SIZE], char *words[WORDS])
{
	LL_SCOPE_CLOSE int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t used = 0, count = 0;
	ssize_t n = 0;
	while (fd >= 0 && used < WORDS_SIZE && (n = read(fd, text + used, WORDS_SIZE - used)) > 0)
		used += (size_t)n;
	if (!used || used == WORDS_SIZE || text[used - 1])
		return false;
	for (size_t at = 0; at < used && count < WORDS - 1; at += strlen(text + at) + 1)
		words[count++] = text + at;
	words[count] = NULL;
	return count && count < WORDS - 1;
}

void ll_limits_leave_library(void)
{
	const char *list = getenv("LD_PRELOAD");
	LL_SCOPE_STRBUF struct ll_strbuf rest = LL_STRBUF_INIT;
	LL_SCOPE_FREE char *text = malloc(WORDS_SIZE);
	char *words[WORDS];
	if (!list || !leave_out(list, &rest) || rest.failed || !text || !read_words(text, words))
		return;
	if (rest.length ? setenv("LD_PRELOAD", rest.buf, 1) : unsetenv("LD_PRELOAD"))
		return;
	execv("/proc/self/exe", words);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(bool *)data |= is_library(info->dlpi_name, strlen(info->dlpi_name));
	return 0;
}

bool ll_limits_has_library(void)
{
	bool has_library = false;
	dl_iterate_phdr(look_at, &has_library);
	return has_library;
}
