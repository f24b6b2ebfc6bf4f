/*
 * walljump.c - preloaded: the wall clock is off by as many seconds as the file $WALLJUMP_FILE says at the moment.
 * CLOCK_MONOTONIC and the others are left alone, as when an administrator sets the time.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long offset_s(void)
{
	const char *path = getenv("WALLJUMP_FILE");
	char text[32] = "";
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n > 0 ? strtol(text, NULL, 10) : 0;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);
	if (rc == 0 && id == CLOCK_REALTIME)
		ts->tv_sec += offset_s();
	return rc;
}
