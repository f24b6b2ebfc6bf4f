#include "base/guest_thread.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

int ll_guest_thread_start(size_t stack_bytes, void *(*entry)(void *), void *arg, pthread_t *ret_id)
{
	pthread_t id;
	pthread_attr_t attr;
	sigset_t all, before;
	size_t least_bytes = (size_t)PTHREAD_STACK_MIN;
	pthread_attr_init(&attr);
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes > least_bytes ? stack_bytes : least_bytes);
	if (!ret_id)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&id, &attr, entry, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc && ret_id)
		*ret_id = id;
	return -rc;
}
