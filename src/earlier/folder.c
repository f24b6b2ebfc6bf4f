/* Where the file is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "earlier/file.h"

static int put_path(char ret_path[PATH_MAX], const char *parent, const char *name, struct ll_err *err)
{
	int n = snprintf(ret_path, PATH_MAX, "%s%s", parent, name);
	return n < 0 || n >= PATH_MAX ? ll_err_set(err, -ENAMETOOLONG, "state folder: too long a path") : 0;
}

int ll_earlier_folder(const char *sim_folder, char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (sim_folder && *sim_folder)
		return put_path(ret_path, sim_folder, "", err);
	if (state && *state == '/')
		return put_path(ret_path, state, "/loadline", err);
	if (home && *home == '/')
		return put_path(ret_path, home, "/.local/state/loadline", err);
	return ll_err_set(err, -ENOENT, "state folder: neither XDG_STATE_HOME nor HOME is set");
}

/* Root with the HOME of another user (sudo) makes nothing there. */
static int check_owner(int fd, const char *path, struct ll_err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return ll_err_set(err, -errno, "state folder: %.200s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return ll_err_set(err, -EPERM, "state folder: %.200s: belongs to user %lu, not to you (%lu)", path,
				  (unsigned long)st.st_uid, (unsigned long)geteuid());
	return 0;
}

static int open_folder(const char *path, int *ret_fd, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ll_err_set(err, -errno, "state folder: %.200s: %s", path, strerror(errno));
	int rc = check_owner(fd, path, err);
	if (rc)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Makes what is missing, in a folder that is the user's own. */
static int make_folder(char *path, struct ll_err *err)
{
	LL_SCOPE_CLOSE int parent_fd = -1;
	char *slash = strrchr(path, '/');
	if (access(path, F_OK) == 0)
		return 0;
	if (!slash || slash == path)
		return ll_err_set(err, -ENOENT, "state folder: %.200s: %s", path, strerror(ENOENT));
	*slash = '\0';
	int rc = make_folder(path, err);
	if (!rc)
		rc = open_folder(path, &parent_fd, err);
	*slash = '/';
	if (!rc && mkdir(path, 0700) && errno != EEXIST)
		rc = ll_err_set(err, -errno, "state folder: make %.200s: %s", path, strerror(errno));
	return rc;
}

int ll_earlier_folder_open(const char *path, int *ret_fd, struct ll_err *err)
{
	char copy[PATH_MAX];
	int rc = put_path(copy, path, "", err);
	if (!rc)
		rc = make_folder(copy, err);
	return rc ? rc : open_folder(path, ret_fd, err);
}
