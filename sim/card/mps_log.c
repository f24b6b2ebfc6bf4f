#include "card/mps_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "card/mps_pipe.h"

static int log_fd = -1;
static bool is_echoed;

void sim_mps_log_open(const char *name, bool echo)
{
	char path[PATH_MAX];
	const char *folder = sim_mps_log_folder();
	is_echoed = echo;
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return;
	int n = snprintf(path, sizeof path, "%s/%s", folder, name);
	if (n > 0 && (size_t)n < sizeof path)
		log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

void sim_mps_log(const char *who, const char *format, ...)
{
	char line[1024];
	struct timespec now;
	struct tm parts;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	size_t n = strftime(line, sizeof line, "[%Y-%m-%d %H:%M:%S", &parts);
	n += (size_t)snprintf(line + n, sizeof line - n, ".%03ld %s %5d] ", now.tv_nsec / 1000000, who, (int)getpid());
	va_list args;
	va_start(args, format);
	int added = vsnprintf(line + n, sizeof line - n - 1, format, args);
	va_end(args);
	n += added > 0 ? (size_t)added : 0;
	n = n < sizeof line - 1 ? n : sizeof line - 2;
	line[n++] = '\n';
	/* A full disk is no reason to stop. */
	if (log_fd >= 0 && write(log_fd, line, n) < 0)
		log_fd = -1;
	if (is_echoed && write(STDOUT_FILENO, line, n) < 0)
		is_echoed = false;
}
