#include "cli/run/find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

static int fail(const char *command, int code, struct ll_err *err)
{
	ll_err_set(err, -code, "%.200s: %s", command, code == ENOENT ? "command not found" : strerror(code));
	if (err)
		err->status = code == ENOENT || code == ENOTDIR ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

/* 0 or the errno. */
static int try_file(const char *path)
{
	struct stat st;
	if (stat(path, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return access(path, X_OK) ? errno : 0;
}

/* An empty folder is the current one. A file that is there and cannot be run is told only if no later one can. */
static int search(const char *command, const char *folders, char ret_path[PATH_MAX])
{
	int worst = ENOENT;
	for (const char *folder = folders;; folder++) {
		size_t length = strcspn(folder, ":");
		int n = snprintf(ret_path, PATH_MAX, "%.*s%s%s", (int)length, folder, length ? "/" : "./", command);
		int code = n > 0 && n < PATH_MAX ? try_file(ret_path) : ENAMETOOLONG;
		if (code == 0)
			return 0;
		if (code == EACCES)
			worst = EACCES;
		folder += length;
		if (!*folder)
			return worst;
	}
}

int ll_run_find(const char *command, char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *folders = getenv("PATH");
	int code;
	if (!*command || strlen(command) >= PATH_MAX)
		return fail(command, *command ? ENAMETOOLONG : ENOENT, err);
	if (strchr(command, '/')) {
		code = try_file(command);
		snprintf(ret_path, PATH_MAX, "%s", command);
	} else {
		code = search(command, folders ? folders : "/bin:/usr/bin", ret_path);
	}
	return code ? fail(command, code, err) : 0;
}
