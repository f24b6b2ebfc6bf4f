#include "cli/common/still.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/translate.h"

enum { SAY_AFTER_S = 1 };

static void *say_main(void *arg)
{
	struct ll_still *still = arg;
	struct timespec at;
	int rc = 0;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += SAY_AFTER_S;
	pthread_mutex_lock(&still->lock);
	while (!still->is_ended && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&still->end, &still->lock, &at);
	if (!still->is_ended)
		fprintf(stderr, "loadline: %s\n", still->text);
	pthread_mutex_unlock(&still->lock);
	return NULL;
}

void ll_still_begin(struct ll_still *still, const char *format, ...)
{
	va_list ap;
	sigset_t all, before;
	pthread_condattr_t attr;
	*still = (struct ll_still){.is_ended = false};
	va_start(ap, format);
	vsnprintf(still->text, sizeof still->text, ll_translate(format), ap);
	va_end(ap);
	pthread_mutex_init(&still->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&still->end, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all); /* signals are the command's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	still->is_begun = pthread_create(&still->thread, NULL, say_main, still) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ll_still_end(struct ll_still *still)
{
	if (!still->is_begun)
		return;
	pthread_mutex_lock(&still->lock);
	still->is_ended = true;
	pthread_cond_signal(&still->end);
	pthread_mutex_unlock(&still->lock);
	pthread_join(still->thread, NULL);
	still->is_begun = false;
}

int ll_endings_block(const int *signals, size_t count, sigset_t *ret_before)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < count; i++) {
		struct sigaction action;
		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
