#include "ledger/fork.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ll_fork_item head = {NULL, &head, &head};

void ll_fork_block(void)
{
	pthread_mutex_lock(&mutex);
}

void ll_fork_unblock(void)
{
	pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
	for (struct ll_fork_item *item = head.next; item != &head; item = item->next)
		item->in_child(item);
	pthread_mutex_unlock(&mutex);
}

static void install(void)
{
	pthread_atfork(ll_fork_block, ll_fork_unblock, in_child);
}

void ll_fork_add(struct ll_fork_item *item)
{
	pthread_once(&once, install);
	ll_fork_block();
	item->previous = &head;
	item->next = head.next;
	head.next->previous = item;
	head.next = item;
	ll_fork_unblock();
}

void ll_fork_remove(struct ll_fork_item *item)
{
	ll_fork_block();
	item->previous->next = item->next;
	item->next->previous = item->previous;
	ll_fork_unblock();
}
