#include "base/runtime_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"

#define SYSTEM_FOLDER "/run/loadline"

static int put_path(char ret_path[LL_FOLDER_SIZE], const char *parent, const char *name, struct ll_err *err)
{
	int n = snprintf(ret_path, LL_FOLDER_SIZE, "%s%s", parent, name);
	if (n < 0 || n >= LL_FOLDER_SIZE)
		return ll_err_set(err, -ENAMETOOLONG, "runtime folder: '%s%s' is too long", parent, name);
	return 0;
}

static bool can_use_system_folder(void)
{
	return geteuid() == 0 && (access(SYSTEM_FOLDER, W_OK) == 0 || access("/run", W_OK) == 0);
}

int ll_runtime_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err)
{
	if (sim_folder && *sim_folder)
		return put_path(ret_path, sim_folder, "", err);
	if (can_use_system_folder())
		return put_path(ret_path, SYSTEM_FOLDER, "", err);
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (runtime && *runtime == '/')
		return put_path(ret_path, runtime, "/loadline", err);
	char name[40];
	snprintf(name, sizeof name, "/tmp/loadline-%lu", (unsigned long)geteuid());
	return put_path(ret_path, name, "", err);
}

static int check_folder(int fd, const char *path, struct ll_err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return ll_err_set(err, -errno, "runtime folder: %s: %s", path, strerror(errno));
	if (st.st_uid != geteuid()) {
		ll_err_set(err, -EPERM, "runtime folder: %s: belongs to user %lu, not to you (%lu)", path,
			   (unsigned long)st.st_uid, (unsigned long)geteuid());
		ll_err_hint(err, "remove it, or set XDG_RUNTIME_DIR to a folder of your own");
		return -EPERM;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		ll_err_set(err, -EPERM, "runtime folder: %s: others may write it (mode %04o)", path,
			   (unsigned)(st.st_mode & 07777));
		ll_err_hint(err, "chmod 0700 %s", path);
		return -EPERM;
	}
	return 0;
}

int ll_runtime_folder_open(const char *path, int *ret_fd, struct ll_err *err)
{
	bool is_system = strcmp(path, SYSTEM_FOLDER) == 0;
	if (mkdir(path, is_system ? 0755 : 0700) && errno != EEXIST) {
		ll_err_set(err, -errno, "runtime folder: make %s: %s", path, strerror(errno));
		return ll_err_hint(err, "set XDG_RUNTIME_DIR to a folder of your own, or unset it");
	}
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		int code = errno == ELOOP || errno == ENOTDIR ? EPERM : errno;
		ll_err_set(err, -code, "runtime folder: %s: %s", path,
			   code == EPERM ? _("is not a folder, or a symbolic link") : strerror(code));
		ll_err_hint(err, "remove it, or set XDG_RUNTIME_DIR to a folder of your own");
		return -code;
	}
	int rc = check_folder(fd, path, err);
	if (rc)
		return rc;
	if (is_system)
		fchmod(fd, 0755);
	*ret_fd = fd;
	fd = -1;
	return 0;
}
