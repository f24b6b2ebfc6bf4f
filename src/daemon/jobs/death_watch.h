/*
 * death_watch.h - tells the loop that a process has ended.
 */
#ifndef LOADLINE_DAEMON_JOBS_DEATH_WATCH_H
#define LOADLINE_DAEMON_JOBS_DEATH_WATCH_H

#include <stdbool.h>
#include <uv.h>

struct ll_death_watch {
	uv_poll_t poll;
	int fd; /* process.h */
	bool is_polled, has_started;
	void (*on_death)(void *data);
	void *data;
};

/* Makes a watch that is not started. The watch owns the descriptor. NULL: no memory; the caller keeps the
 * descriptor. */
struct ll_death_watch *ll_death_watch_new(uv_loop_t *loop, int fd, void (*on_death)(void *data), void *data);

/* Starts the watch: the loop calls on_death once. It never does so if the descriptor is not a pidfd; then call
 * ll_process_has_ended. */
void ll_death_watch_start(struct ll_death_watch *watch);
void ll_death_watch_stop(struct ll_death_watch *watch);

/* Closes the descriptor. NULL is allowed. */
void ll_death_watch_close(struct ll_death_watch *watch);

#endif
