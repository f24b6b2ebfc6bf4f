/*
 * death_watch.h - tells the loop that a process has ended.
 */
#ifndef LOADLINE_DAEMON_DEATH_WATCH_H
#define LOADLINE_DAEMON_DEATH_WATCH_H

#include <stdbool.h>
#include <uv.h>

struct ll_death_watch {
	uv_poll_t poll;
	int fd; /* process.h */
	bool is_polled, has_started;
	void (*on_death)(void *data);
	void *data;
};

/* Makes one that does not watch yet. The descriptor becomes its own. NULL: no memory; the descriptor stays the
 * caller's. */
struct ll_death_watch *ll_death_watch_new(uv_loop_t *loop, int fd, void (*on_death)(void *data), void *data);

/* Watches: on_death is called once, from the loop. It is not if the descriptor is no pidfd: ask ll_process_has_ended.
 */
void ll_death_watch_start(struct ll_death_watch *watch);
void ll_death_watch_stop(struct ll_death_watch *watch);

/* Closes the descriptor. NULL is fine. */
void ll_death_watch_close(struct ll_death_watch *watch);

#endif
