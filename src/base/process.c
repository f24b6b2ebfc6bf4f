#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/process_id.h"
#include "base/scope.h"

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#define SO_PEERPIDFD 77
#endif

enum { PATH_SIZE = 64, TEXT_SIZE = 1024 };

int ll_process_open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	errno = ENOSYS;
	return -1;
#endif
}

static int open_folder(pid_t pid)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

int ll_process_open(pid_t pid)
{
	if (pid <= 0)
		return -ESRCH;
	int fd = ll_process_open_pidfd(pid);
	if (fd >= 0)
		return fd;
	return errno == ESRCH ? -ESRCH : open_folder(pid);
}

int ll_process_of_peer(int socket_fd)
{
	int fd = -1;
	struct ucred peer;
	socklen_t length = sizeof fd;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0)
		return fd;
	length = sizeof peer;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	return ll_process_open(peer.pid);
}

/* Reads a file of /proc, relative to the folder `at`. Returns its length; -1: it cannot be read. */
static ssize_t read_text(int at, const char *name, char text[TEXT_SIZE])
{
	LL_SCOPE_CLOSE int fd = openat(at, name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, TEXT_SIZE - 1);
	text[length > 0 ? length : 0] = '\0';
	return length;
}

/* Only the fdinfo of a pidfd has the line "Pid:". Returns -1 if the process has ended, 0 if it is not visible here, and
 * -2 if the descriptor is not a pidfd. */
static int pid_of_pidfd(int fd)
{
	char path[PATH_SIZE], text[TEXT_SIZE];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	if (read_text(AT_FDCWD, path, text) <= 0)
		return -2;
	const char *line = strstr(text, "\nPid:");
	return line ? (int)strtol(line + strlen("\nPid:"), NULL, 10) : -2;
}

static bool is_folder(int fd)
{
	struct statfs system;
	struct stat folder, stat_file;
	return fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC && fstat(fd, &folder) == 0 &&
	       S_ISDIR(folder.st_mode) &&
	       (fstatat(fd, "stat", &stat_file, 0) == 0 ? S_ISREG(stat_file.st_mode)
							: errno == ESRCH || errno == ENOENT);
}

bool ll_process_is_pidfd(int fd)
{
	char path[PATH_SIZE], file[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(path, file, sizeof file - 1);
	if (length < 0)
		return false;
	file[length] = '\0';
	/* "anon_inode:[pidfd]", or "pidfd:[4711]" if pidfds have their own file system. */
	return strstr(file, "pidfd") && strchr(file, ':') && file[0] != '/';
}

bool ll_process_is_valid(int fd)
{
	return ll_process_is_pidfd(fd) || is_folder(fd);
}

static bool has_folder_ended(int fd)
{
	char text[TEXT_SIZE];
	struct ll_process_stat stat;
	return read_text(fd, "stat", text) <= 0 || ll_process_parse_stat(text, &stat) || stat.is_dead;
}

bool ll_process_has_ended(int fd)
{
	struct pollfd ended = {.fd = fd, .events = POLLIN};
	if (ll_process_is_pidfd(fd))
		return poll(&ended, 1, 0) > 0;
	return has_folder_ended(fd);
}

/* A /proc of another PID namespace has the numbers of that namespace. */
static bool is_own_proc(int fd)
{
	struct stat folder, own;
	return fstat(fd, &folder) == 0 && fstatat(AT_FDCWD, "/proc", &own, 0) == 0 && folder.st_dev == own.st_dev;
}

pid_t ll_process_id_of_fd(int fd)
{
	char text[TEXT_SIZE];
	if (!ll_process_is_pidfd(fd))
		return is_own_proc(fd) && read_text(fd, "stat", text) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
	int pid = pid_of_pidfd(fd);
	return pid > 0 ? pid : 0;
}

/* Returns the length of the text of /proc/PID/status; at most 0: it cannot be read. */
static ssize_t read_status(int fd, char text[TEXT_SIZE])
{
	char name[PATH_SIZE];
	if (!ll_process_is_pidfd(fd))
		return read_text(fd, "status", text);
	snprintf(name, sizeof name, "/proc/%d/status", pid_of_pidfd(fd));
	ssize_t length = read_text(AT_FDCWD, name, text);
	/* The pid is reused only after the process's end. */
	return ll_process_has_ended(fd) ? -1 : length;
}

int ll_process_read_users(int fd, struct ll_process_users *ret_users)
{
	char text[TEXT_SIZE];
	uint32_t uids[4];
	if (read_status(fd, text) <= 0 || !ll_process_parse_uids(text, uids))
		return -ENOENT;
	*ret_users = (struct ll_process_users){.real = uids[0], .saved = uids[2]};
	return 0;
}
