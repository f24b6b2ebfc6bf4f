/* only_version_2.c - a library to preload for slurmd where version 1 of control groups is mounted beside version 2:
 * /proc/PID/cgroup has the line of version 2 alone, as where there is no version 1. Slurm refuses to use version 2
 * otherwise. */
/* Both functions have their own names. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int (*open_fn)(const char *path, int flags, ...);

static int keep_line(int fd)
{
	char text[1 << 12];
	ssize_t length = read(fd, text, sizeof text - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	const char *line = strstr(text, "0::");
	fd = line ? memfd_create("cgroup", MFD_CLOEXEC) : -1;
	if (fd < 0 || write(fd, line, strlen(line)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		_exit(1);
	return fd;
}

static int open_any(const char *name, const char *path, int flags, mode_t mode)
{
	static const char begin[] = "/proc/", end[] = "/cgroup";
	size_t length = strlen(path), tail = sizeof end - 1;
	open_fn next;
	*(void **)&next = dlsym(RTLD_NEXT, name);
	int fd = next(path, flags, mode);
	if (fd >= 0 && strncmp(path, begin, sizeof begin - 1) == 0 && length > tail &&
	    strcmp(path + length - tail, end) == 0)
		return keep_line(fd);
	return fd;
}

#define OPEN(name)                                                                                                     \
	__attribute__((visibility("default"))) int name(const char *path, int flags, ...)                              \
	{                                                                                                              \
		va_list more;                                                                                          \
		va_start(more, flags);                                                                                 \
		mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;                              \
		va_end(more);                                                                                          \
		return open_any(#name, path, flags, mode);                                                             \
	}

OPEN(open)
OPEN(open64)
