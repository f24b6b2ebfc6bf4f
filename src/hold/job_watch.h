/*
 * job_watch.h - whether governed programs have work on a card, as they say in the pages of their jobs
 * (protocol/page.h).
 *
 * A program says that it has work before its first kernel starts. So a load that looks here stops earlier than one that
 * feels the kernel on the card. Where no loadlined serves, nothing is seen, and the load goes by its other sensors.
 *
 * The watch connects to loadlined, maps the pages of all jobs for reading, and keeps a list of the slots of its card.
 * It never waits, and has no thread: a look reads the list, and now and then the socket. It starts no loadlined. When
 * one appears, the watch joins it within a second. Pages stay mapped while there is none, because programs go on to
 * write them.
 *
 * A watch is used by one thread.
 */
#ifndef LOADLINE_HOLD_JOB_WATCH_H
#define LOADLINE_HOLD_JOB_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_places;
struct ll_watched_job;

struct ll_job_watch {
	const struct ll_places *places; /* the caller's */
	const char *uuid;               /* of the card; the caller's */
	int fd;                         /* -1: not connected */
	bool is_welcome;                /* loadlined has answered */
	bool has_warned;                /* of a page that cannot be read */
	uint64_t next_ns;               /* when to look at the socket, or to connect */
	uint64_t forget_ns;             /* when pages that a former loadlined gave end; 0: there are none */
	struct ll_watched_job *jobs;
	size_t count;
};

/* Begins to watch. Work that ended before counts for nothing. */
void ll_job_watch_begin(struct ll_job_watch *watch, const struct ll_places *places, const char *uuid, uint64_t now_ns);

/* Closes the connection and unmaps all. Fine without begin if the watch is all zeros. */
void ll_job_watch_end(struct ll_job_watch *watch);

/* Whether a governed program has work on the card, or had some since the last look. Well under a microsecond, and some
 * system calls each 10 ms. */
bool ll_job_watch_look(struct ll_job_watch *watch, uint64_t now_ns);

#endif
