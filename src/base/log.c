#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/translate.h"
#include "base/utf8.h"

#include "base/advice.h"

static atomic_int max_level = LL_LOG_INFO;
static atomic_int log_fd = STDERR_FILENO;

static const char *const level_names[] = {"ERROR", "WARN", "INFO", "DEBUG"};

void ll_log_set_level(enum ll_log_level level)
{
	max_level = (int)level;
}

void ll_log_set_fd(int fd)
{
	log_fd = fd;
}

void ll_log(enum ll_log_level level, const char *fmt, ...)
{
	if ((int)level > atomic_load_explicit(&max_level, memory_order_relaxed))
		return;
	int saved_errno = errno;
	char line[1024], said[1024];
	struct timespec now;
	struct tm tm;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	size_t n = strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, sizeof line - n, ".%03ld %s ", now.tv_nsec / 1000000, level_names[level]);
	va_list ap;
	va_start(ap, fmt);
	int body = vsnprintf(said, sizeof said, ll_translate(fmt), ap);
	va_end(ap);
	if (body > 0)
		ll_advice_copy(line + n, sizeof line - n - 1, said);
	n += strlen(line + n);
	line[n] = '\0';
	ll_utf8_mend(line);
	n = strlen(line);
	line[n++] = '\n';
	/* A failed write must not stop the load, and there is nobody to report it to. */
	ssize_t written = write(atomic_load(&log_fd), line, n);
	(void)written;
	errno = saved_errno;
}
