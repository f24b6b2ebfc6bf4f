#include "hold/event.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

/* Samples may not use these, so that a state change finds room. */
enum { RESERVED_SLOTS = LL_EVENT_SLOTS / 4 };

int ll_event_queue_init(struct ll_event_queue *queue, struct ll_err *err)
{
	queue->head = queue->tail = 0;
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->fd < 0)
		return ll_err_set(err, -errno, "make an event queue: %s", strerror(errno));
	pthread_mutex_init(&queue->lock, NULL);
	return 0;
}

void ll_event_queue_fini(struct ll_event_queue *queue)
{
	close(queue->fd);
	queue->fd = -1;
	pthread_mutex_destroy(&queue->lock);
}

void ll_event_add(struct ll_event_queue *queue, const struct ll_event *event)
{
	LL_SCOPE_LOCK(&queue->lock);
	size_t used = queue->head - queue->tail;
	size_t room = event->kind == LL_EVENT_SAMPLE ? LL_EVENT_SLOTS - RESERVED_SLOTS : LL_EVENT_SLOTS;
	if (used >= room)
		return;
	queue->slots[queue->head++ % LL_EVENT_SLOTS] = *event;
}

void ll_event_wake(struct ll_event_queue *queue)
{
	uint64_t one = 1;
	ssize_t n = write(queue->fd, &one, sizeof one); /* the counter cannot overflow: the queue is full long before */
	(void)n;
}

void ll_event_put(struct ll_event_queue *queue, const struct ll_event *event)
{
	ll_event_add(queue, event);
	ll_event_wake(queue);
}

bool ll_event_take(struct ll_event_queue *queue, struct ll_event *ret_event)
{
	LL_SCOPE_LOCK(&queue->lock);
	if (queue->tail == queue->head) {
		uint64_t count;
		ssize_t n = read(queue->fd, &count, sizeof count); /* empties the eventfd; EAGAIN is fine */
		(void)n;
		return false;
	}
	*ret_event = queue->slots[queue->tail++ % LL_EVENT_SLOTS];
	return true;
}

const char *ll_event_name(enum ll_event_kind kind)
{
	static const char *const names[] = {
	    [LL_EVENT_STATE] = "state", [LL_EVENT_SAMPLE] = "sample",   [LL_EVENT_SETTLE] = "settle",
	    [LL_EVENT_YIELD] = "yield", [LL_EVENT_RESUME] = "resume",   [LL_EVENT_RELEASE] = "release",
	    [LL_EVENT_FAULT] = "fault", [LL_EVENT_SUMMARY] = "summary", [LL_EVENT_LEAVE] = "leave",
	};
	return names[kind];
}
