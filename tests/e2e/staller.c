/* staller.c - a library to preload: reads of /proc/PID/cmdline, environ and maps of the processes in
 * LOADLINE_TEST_STALLED
 * ("17 18") do not end, as where the process's memory lock is held. */
#undef _FILE_OFFSET_BITS /* with it the two names below are one */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*open_fn)(const char *path, int flags, ...);

EXPORT int open(const char *path, int flags, ...);
EXPORT int open64(const char *path, int flags, ...);

static int is_stalled(const char *path)
{
	const char *text = getenv("LOADLINE_TEST_STALLED");
	char name[16];
	int pid;
	if (!text || sscanf(path, "/proc/%d/%15s", &pid, name) != 2)
		return 0;
	if (strcmp(name, "cmdline") != 0 && strcmp(name, "environ") != 0 && strcmp(name, "maps") != 0)
		return 0;
	for (char *end; *text; text = end) {
		if (strtol(text, &end, 10) == pid)
			return 1;
		if (end == text)
			break;
	}
	return 0;
}

/* The writing end stays open, so a read waits for ever. */
static int open_silence(void)
{
	int ends[2];
	return pipe(ends) ? -1 : ends[0];
}

static int open_file(const char *path, int flags, int mode)
{
	static open_fn real;
	if (is_stalled(path))
		return open_silence();
	if (!real) {
		void *found = dlsym(RTLD_NEXT, "open64");
		memcpy(&real, &found, sizeof real);
	}
	return real(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	int mode = flags & O_CREAT ? va_arg(list, int) : 0;
	va_end(list);
	return open_file(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	int mode = flags & O_CREAT ? va_arg(list, int) : 0;
	va_end(list);
	return open_file(path, flags, mode);
}
