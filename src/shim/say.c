#include "shim/say.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/scope.h"

enum { LINE_BYTES = 700 }; /* a pipe takes so much as a whole, or not at all */

static bool takes_a_line(void)
{
	struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	int count = poll(&pfd, 1, 0);
	if (count < 0 && errno == EINVAL) { /* RLIMIT_NOFILE is 0, and poll takes no more descriptors than that */
		fd_set writable;
		struct timeval at_once = {0};
		FD_ZERO(&writable);
		FD_SET(STDERR_FILENO, &writable);
		return select(STDERR_FILENO + 1, NULL, &writable, NULL, &at_once) == 1;
	}
	return count == 1 && pfd.revents == POLLOUT;
}

/* If the reader is gone, this thread gets a SIGPIPE. It is removed again, unless one was pending before. */
static void write_quietly(const char *line, size_t length)
{
	sigset_t pipe, before, pending;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	bool was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	bool is_broken = write(STDERR_FILENO, line, length) < 0 && errno == EPIPE;
	struct timespec at_once = {0};
	if (is_broken && !was_pending)
		sigtimedwait(&pipe, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ll_say(const char *format, ...)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	char said[LINE_BYTES], line[LINE_BYTES + 1] = "loadline: ";
	va_list args;
	va_start(args, format);
	if (vsnprintf(said, sizeof said, format, args) < 0)
		said[0] = '\0';
	va_end(args);
	size_t length = strlen(line);
	ll_advice_copy(line + length, LINE_BYTES - length, said);
	length += strlen(line + length);
	line[length++] = '\n';
	if (takes_a_line())
		write_quietly(line, length);
	errno = code;
}
