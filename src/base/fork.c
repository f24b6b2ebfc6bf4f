#include "base/fork.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t fork_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct ll_fork_item fork_items = {NULL, &fork_items, &fork_items};

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
	for (struct ll_fork_item *item = fork_items.next; item != &fork_items; item = item->next)
		item->in_child(item);
	pthread_mutex_unlock(&fork_mutex);
}

static void install_fork_handlers(void)
{
	pthread_atfork(ll_fork_block, ll_fork_unblock, run_items_in_child);
}

void ll_fork_add(struct ll_fork_item *item)
{
	pthread_once(&fork_once, install_fork_handlers);
	ll_fork_block();
	item->previous = &fork_items;
	item->next = fork_items.next;
	fork_items.next->previous = item;
	fork_items.next = item;
	ll_fork_unblock();
}

void ll_fork_remove(struct ll_fork_item *item)
{
	ll_fork_block();
	item->previous->next = item->next;
	item->next->previous = item->previous;
	ll_fork_unblock();
}
