#include "base/guest.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- threads ---- */

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

/* ---- forks ---- */

static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct ll_fork_item *fork_items; /* the last one added comes first */

void ll_fork_block(void)
{
	pthread_mutex_lock(&fork_mutex);
}

void ll_fork_unblock(void)
{
	pthread_mutex_unlock(&fork_mutex);
}

static void run_items_in_child(void)
{
	for (struct ll_fork_item *item = fork_items; item; item = item->next)
		item->in_child(item);
	pthread_mutex_unlock(&fork_mutex);
}

static void install_fork_handlers(void)
{
	pthread_atfork(ll_fork_block, ll_fork_unblock, run_items_in_child);
}

void ll_fork_add(struct ll_fork_item *item)
{
	if (atomic_load_explicit(&item->is_added, memory_order_acquire))
		return;
	pthread_once(&fork_once, install_fork_handlers);
	ll_fork_block();
	if (!item->is_added) {
		item->next = fork_items;
		fork_items = item;
		item->is_added = true;
	}
	ll_fork_unblock();
}

/* ---- files ---- */

/* With valid arguments getrlimit does not fail, so errno is unchanged. RLIM_INFINITY is the largest number. */
bool ll_file_limit_allows(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) || bytes <= limit.rlim_cur;
}
