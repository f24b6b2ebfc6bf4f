#include "cli/run_environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/beside.h"

enum { OWN_VARIABLES = 3 };

static const char *const names[OWN_VARIABLES] = {LL_RUN_VARIABLE, "CUDA_VISIBLE_DEVICES", "LD_PRELOAD"};

/* From the program's folder: in a build folder, and installed. */
static const char *const places[] = {"src/shim", "../lib/loadline", NULL};
static const char library[] = "libloadline-cuda.so";

static int find_named(const char *path, char ret_path[PATH_MAX], struct ll_err *err)
{
	if (access(path, R_OK) == 0 && realpath(path, ret_path))
		return 0;
	ll_err_set(err, -ENOENT, "LOADLINE_SHIM=%.200s: %s", path, strerror(errno));
	return ll_err_hint(err, "unset it, or name the file of %s", library);
}

int ll_run_find_shim(char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *named = getenv("LOADLINE_SHIM");
	if (named && *named) {
		int rc = find_named(named, ret_path, err);
		if (rc < 0)
			return rc;
	} else if (ll_beside_find(places, library, ret_path) < 0) {
		ll_err_set(err, -ENOENT, "%s is not beside this program, nor in %s", library, places[1]);
		return ll_err_hint(err, "install loadline whole, or set LOADLINE_SHIM to the library's file");
	}
	if (!strpbrk(ret_path, " :"))
		return 0;
	ll_err_set(err, -EINVAL, "%.200s: the loader takes no blank or colon in the path of a library to preload",
		   ret_path);
	return ll_err_hint(err, "install loadline elsewhere");
}

static bool is_last(const char *list, const char *path)
{
	size_t length = strlen(path), whole = strlen(list);
	const char *tail = list + whole - length;
	return whole >= length && strcmp(tail, path) == 0 && (tail == list || tail[-1] == ':' || tail[-1] == ' ');
}

/* Last: whoever else stands in front of the driver passes on to us, and we to the driver alone. */
static char *make_preload(const char *shim)
{
	const char *old = getenv("LD_PRELOAD");
	char *text = NULL;
	int length;
	if (!old || !*old || is_last(old, shim))
		length = asprintf(&text, "LD_PRELOAD=%s", old && *old ? old : shim);
	else
		length = asprintf(&text, "LD_PRELOAD=%s:%s", old, shim);
	return length < 0 ? NULL : text;
}

static char *make_variable(const char *name, const char *value)
{
	char *text = NULL;
	return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

static bool is_own(const char *variable)
{
	for (size_t i = 0; i < OWN_VARIABLES; i++) {
		size_t length = strlen(names[i]);
		if (strncmp(variable, names[i], length) == 0 && variable[length] == '=')
			return true;
	}
	return false;
}

/* Ours come first, so that they are known when the list is freed; the others are not ours. */
int ll_run_environment_make(const struct ll_run_settings *settings, const char *shim, const char *visible,
			    char ***ret_environment, struct ll_err *err)
{
	char text[LL_RUN_TEXT_SIZE];
	size_t count = 0;
	int rc = ll_run_settings_write(settings, text);
	if (rc < 0)
		return ll_err_set(err, rc, "tenant %s: its settings: %s", settings->tenant, strerror(-rc));
	while (environ && environ[count])
		count++;
	char **list = calloc(count + OWN_VARIABLES + 1, sizeof *list);
	if (!list)
		return ll_err_set(err, -ENOMEM, "environment: %s", strerror(ENOMEM));
	list[0] = make_variable(names[0], text);
	list[1] = make_variable(names[1], visible);
	list[2] = make_preload(shim);
	if (!list[0] || !list[1] || !list[2]) {
		for (size_t i = 0; i < OWN_VARIABLES; i++)
			free(list[i]);
		free(list);
		return ll_err_set(err, -ENOMEM, "environment: %s", strerror(ENOMEM));
	}
	size_t used = OWN_VARIABLES;
	for (size_t i = 0; i < count; i++) {
		if (!is_own(environ[i]))
			list[used++] = environ[i];
	}
	*ret_environment = list;
	return 0;
}

void ll_run_environment_free(char **environment)
{
	for (size_t i = 0; environment && i < OWN_VARIABLES; i++)
		free(environment[i]);
	free(environment);
}
