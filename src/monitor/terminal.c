#include "monitor/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scope.h"
#include "protocol/message_event.h"

enum { PATH_SIZE = 48, INFO_SIZE = 256, LINE_SIZE = LL_EVENT_TEXT_SIZE + 16, OCTAL = 8 };

/* Opens the same file anew, so that it does not block, whatever the process has set. */
static int open_anew(pid_t pid)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, STDERR_FILENO);
	return open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool does_append(pid_t pid)
{
	char path[PATH_SIZE], text[INFO_SIZE];
	unsigned flags = 0;
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)pid, STDERR_FILENO);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[length > 0 ? length : 0] = '\0';
	const char *line = strstr(text, "flags:");
	return line && sscanf(line, "flags: %o", &flags) == 1 && (flags & O_APPEND);
}

/* The descriptor of the process itself, with its position. It may block: it must be polled. */
static int share_descriptor(int process_fd)
{
#ifdef SYS_pidfd_getfd
	return (int)syscall(SYS_pidfd_getfd, process_fd, STDERR_FILENO, 0);
#else
	(void)process_fd;
	errno = ENOSYS;
	return -1;
#endif
}

static int open_errors(int process_fd, pid_t pid)
{
	struct stat st;
	int fd = open_anew(pid);
	if (fd >= 0 && (fstat(fd, &st) || (S_ISREG(st.st_mode) && !does_append(pid)))) {
		close(fd);
		fd = -1;
	}
	return fd >= 0 ? fd : share_descriptor(process_fd);
}

int ll_terminal_say(int process_fd, const char *text)
{
	char line[LINE_SIZE];
	pid_t pid = process_fd < 0 ? 0 : ll_process_id_of_fd(process_fd);
	if (pid <= 0)
		return -ESRCH;
	LL_SCOPE_CLOSE int fd = open_errors(process_fd, pid);
	if (fd < 0)
		return -errno;
	/* The number was this process's when the file was opened. */
	if (ll_process_has_ended(process_fd))
		return -ESRCH;
	if (poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 0) <= 0)
		return -EAGAIN;
	int length = snprintf(line, sizeof line, "loadline: %s\n", text);
	return write(fd, line, (size_t)length) == length ? 0 : -EIO;
}
