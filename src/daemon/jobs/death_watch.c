#include "daemon/jobs/death_watch.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"

static void free_watch(uv_handle_t *handle)
{
	struct ll_death_watch *watch = handle->data;
	close(watch->fd);
	free(watch);
}

struct ll_death_watch *ll_death_watch_new(uv_loop_t *loop, int fd, void (*on_death)(void *data), void *data)
{
	struct ll_death_watch *watch = calloc(1, sizeof *watch);
	if (!watch)
		return NULL;
	watch->fd = fd;
	watch->on_death = on_death;
	watch->data = data;
	watch->is_polled = ll_process_is_pidfd(fd) && uv_poll_init(loop, &watch->poll, fd) == 0;
	watch->poll.data = watch;
	return watch;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct ll_death_watch *watch = poll->data;
	(void)status;
	(void)events;
	ll_death_watch_stop(watch);
	watch->on_death(watch->data);
}

void ll_death_watch_start(struct ll_death_watch *watch)
{
	if (watch->is_polled && !watch->has_started)
		watch->has_started = uv_poll_start(&watch->poll, UV_READABLE, on_readable) == 0;
}

void ll_death_watch_stop(struct ll_death_watch *watch)
{
	if (watch->has_started)
		uv_poll_stop(&watch->poll);
	watch->has_started = false;
}

void ll_death_watch_close(struct ll_death_watch *watch)
{
	if (!watch)
		return;
	if (watch->is_polled) {
		uv_close((uv_handle_t *)&watch->poll, free_watch);
		return;
	}
	close(watch->fd);
	free(watch);
}
