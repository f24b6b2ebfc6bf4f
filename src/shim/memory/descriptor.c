#include "shim/memory/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

static struct flock lock_of(uint64_t id, short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)id, .l_len = 1};
}

bool ll_descriptor_mark(int fd, uint64_t id)
{
	struct flock lock = lock_of(id, F_RDLCK);
	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

enum { WORDS_BEFORE = 5, INFO_SIZE = 2048 };

/* Returns the number of the first locked byte in a text like "OFDLCK ADVISORY READ 1234 00:05:678 5497… 5497…". */
static uint64_t first_byte(const char *lock)
{
	for (int word = 0; word < WORDS_BEFORE; word++) {
		lock = strchr(lock, ' ');
		if (!lock)
			return 0;
		lock += strspn(lock, " ");
	}
	return strtoull(lock, NULL, 10);
}

uint64_t ll_descriptor_id(int fd)
{
	char path[48], info[INFO_SIZE];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	LL_SCOPE_CLOSE int info_fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = info_fd < 0 ? 0 : read(info_fd, info, sizeof info - 1);
	info[length > 0 ? length : 0] = '\0';
	for (const char *lock = info; (lock = strstr(lock, "OFDLCK")); lock++) {
		uint64_t first = first_byte(lock);
		if (first >= LL_DESCRIPTOR_FIRST_ID)
			return first;
	}
	return 0;
}

bool ll_descriptor_find_file(int fd, char *ret_path, size_t size, struct ll_descriptor_file *ret_file)
{
	char link[48];
	struct stat st;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, ret_path, size);
	if (length <= 0 || (size_t)length >= size || fstat(fd, &st))
		return false;
	ret_path[length] = '\0';
	*ret_file = (struct ll_descriptor_file){.device = st.st_dev, .inode = st.st_ino};
	return true;
}

bool ll_descriptor_is_open(uint64_t id, const char *path, const struct ll_descriptor_file *file)
{
	struct stat st;
	struct flock lock = lock_of(id, F_WRLCK);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || st.st_dev != file->device || st.st_ino != file->inode ||
	    fcntl(fd, F_OFD_GETLK, &lock))
		return true;
	return lock.l_type != F_UNLCK;
}
