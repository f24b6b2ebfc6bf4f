#include "cli/run/preload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		return ll_err_hint(err, "install loadline whole, or set %s to the library's file", library->variable);
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

char *ll_preload_append(const char *list, const char *path)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	size_t length;
	for (const char *word = ll_preload_word(list, &length); length;
	     word = ll_preload_word(word + length, &length)) {
		if (strlen(path) == length && strncmp(word, path, length) == 0)
			continue;
		ll_strbuf_add(&text, word, length);
		ll_strbuf_addc(&text, ':');
	}
	ll_strbuf_adds(&text, path);
	return ll_strbuf_detach(&text);
}
