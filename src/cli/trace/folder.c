#include "cli/trace/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

static const char beginning[] = "loadline-trace-";

/* A younger folder may have been made just now, and not be locked yet. */
enum { LEFT_AFTER_S = 60 };

static void empty_folder(int fd)
{
	DIR *dir = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Other users may write to TMPDIR, so the folder is opened once, checked and emptied by its descriptor. */
static void remove_left(int parent_fd, const char *name)
{
	struct stat st;
	LL_SCOPE_CLOSE int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != geteuid() || time(NULL) - st.st_mtime < LEFT_AFTER_S)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return;
	empty_folder(fd);
	unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static void remove_all_left(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0)
			remove_left(dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
}

int ll_trace_folder_make(struct ll_trace_folder *folder, struct ll_err *err)
{
	const char *named = getenv("TMPDIR");
	const char *parent = named && *named == '/' ? named : "/tmp";
	int n = snprintf(folder->path, sizeof folder->path, "%s/%sXXXXXX", parent, beginning);
	if (n < 0 || (size_t)n >= sizeof folder->path)
		return ll_err_set(err, -ENAMETOOLONG, "TMPDIR: %s", strerror(ENAMETOOLONG));
	remove_all_left(parent);
	if (!mkdtemp(folder->path))
		return ll_err_set(err, -errno, "%.200s: %s", folder->path, strerror(errno));
	folder->lock_fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder->lock_fd >= 0)
		flock(folder->lock_fd, LOCK_SH | LOCK_NB);
	return 0;
}

void ll_trace_folder_remove(struct ll_trace_folder *folder)
{
	int fd = folder->lock_fd >= 0 ? folder->lock_fd : open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		empty_folder(fd);
		close(fd);
	}
	rmdir(folder->path);
	folder->lock_fd = -1;
}
