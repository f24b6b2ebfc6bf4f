#include "cli/run/preload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/common/beside.h"

static const char separators[] = ": ";

static int find_named(const struct ll_preload_library *library, const char *path, char ret_path[PATH_MAX],
		      struct ll_err *err)
{
	if (access(path, R_OK) == 0 && realpath(path, ret_path))
		return 0;
	ll_err_set(err, -ENOENT, "%s=%.200s: %s", library->variable, path, strerror(errno));
	return ll_err_hint(err, "unset it, or name the file of %s", library->name);
}

int ll_preload_find(const struct ll_preload_library *library, char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *named = getenv(library->variable);
	if (named && *named) {
		int rc = find_named(library, named, ret_path, err);
		if (rc < 0)
			return rc;
	} else if (ll_beside_find(library->places, library->name, ret_path) < 0) {
		ll_err_set(err, -ENOENT, "%s is not beside this program, nor in %s", library->name, library->places[1]);
		return ll_err_hint(err, "install all of loadline, or set %s to the library's file", library->variable);
	}
	if (!strpbrk(ret_path, separators))
		return 0;
	ll_err_set(err, -EINVAL, "%.200s: the loader takes no blank or colon in the path of a library to preload",
		   ret_path);
	return ll_err_hint(err, "install loadline elsewhere");
}

const char *ll_preload_word(const char *list, size_t *ret_length)
{
	const char *word = list ? list : "";
	word += strspn(word, separators);
	*ret_length = strcspn(word, separators);
	return word;
}

static bool is_same(const char *word, size_t length, const char *text)
{
	return strlen(text) == length && strncmp(word, text, length) == 0;
}

static bool is_file_named(const char *word, size_t length, const char *name)
{
	const char *slash = memrchr(word, '/', length);
	size_t folder = slash ? (size_t)(slash + 1 - word) : 0;
	return is_same(word + folder, length - folder, name);
}

char *ll_preload_insert(const char *list, const char *path, const char *name)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	bool is_in = false;
	size_t length;
	for (const char *word = ll_preload_word(list, &length); length;
	     word = ll_preload_word(word + length, &length)) {
		if (is_same(word, length, path))
			continue;
		bool is_behind =
		    (name && is_file_named(word, length, name)) || is_file_named(word, length, LL_SIM_KERNEL_LIBRARY);
		if (!is_in && is_behind) {
			ll_strbuf_addf(&text, "%s%s", text.length ? ":" : "", path);
			is_in = true;
		}
		ll_strbuf_addf(&text, "%s%.*s", text.length ? ":" : "", (int)length, word);
	}
	if (!is_in)
		ll_strbuf_addf(&text, "%s%s", text.length ? ":" : "", path);
	return ll_strbuf_detach(&text);
}

char *ll_preload_append(const char *list, const char *path)
{
	return ll_preload_insert(list, path, NULL);
}
