#include "base/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/scope.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held from a read to the end of its write */
static int read_fd = -1, write_fd = -1;

static void write_whole(const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = write(STDERR_FILENO, text, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		length -= (size_t)n;
	}
}

/* Copies the contents of the pipe. Returns false if it is empty. */
static bool copy_some(void)
{
	char text[4096];
	LL_SCOPE_LOCK(&mutex);
	ssize_t n = read(read_fd, text, sizeof text);
	if (n > 0)
		write_whole(text, (size_t)n);
	return n > 0;
}

static void copy_rest(void)
{
	while (copy_some())
		;
}

static void *relay_main(void *arg)
{
	struct pollfd ready = {.fd = read_fd, .events = POLLIN};
	(void)arg;
	for (;;) {
		if (poll(&ready, 1, -1) > 0)
			copy_some();
	}
	return NULL;
}

/* The thread handles no signals. */
static int start_thread(void)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, NULL, relay_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc;
}

static void make_relay(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	read_fd = ends[0];
	if (start_thread() == 0) {
		write_fd = ends[1];
		atexit(copy_rest);
		return;
	}
	close(ends[0]);
	close(ends[1]);
}

int ll_relay_fd(void)
{
	pthread_once(&once, make_relay);
	return write_fd;
}
