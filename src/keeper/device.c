#include "keeper/device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 128, NVIDIA_MAJOR = 195 };

/* Takes what the kernel knows already, so that a file system of a user's (FUSE) is not asked. */
static bool is_card(int folder_fd, const char *name)
{
	struct statx file;
	return statx(folder_fd, name, AT_STATX_DONT_SYNC, STATX_TYPE, &file) == 0 && S_ISCHR(file.stx_mode) &&
	       file.stx_rdev_major == NVIDIA_MAJOR;
}

int ll_device_is_open(const char *proc, pid_t pid)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	bool is_open = false;
	snprintf(path, sizeof path, "%.80s/%d/fd", proc, (int)pid);
	DIR *folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!is_open && (entry = readdir(folder)))
		is_open = entry->d_name[0] != '.' && is_card(dirfd(folder), entry->d_name);
	closedir(folder);
	return is_open;
}
