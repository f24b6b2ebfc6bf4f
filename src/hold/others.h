/*
 * others.h - the other programs on a card: those that loadlined governs, and whether they have work.
 */
#ifndef LOADLINE_HOLD_OTHERS_H
#define LOADLINE_HOLD_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_places;
struct ll_watched_job;

/* ---- governed ---- */

/* The governed programs on a card, as loadlined lists them. */

/* How long a governor waits for the list: longer than a loadlined on a busy host needs, and no hold stalls for it. */
#define LL_GOVERNED_WAIT_NS UINT64_C(100000000)

struct ll_governed {
	pid_t pid;
	char tenant[64];
	bool has_work; /* launches that wait or run */
};

/*
 * Asks loadlined, and waits for wait_ns at most. *ret_list is for free(3). -ECONNREFUSED: nobody
 * serves. -ETIMEDOUT: it does not answer. -ESRCH: it is in another PID namespace, so the process ids mean nothing
 * here. Any other -errno.
 */
int ll_governed_list(const struct ll_places *places, const char *uuid, uint64_t wait_ns, struct ll_governed **ret_list,
		     size_t *ret_count);

/* ---- job watch ---- */

/*
 * Checks whether governed programs have work on a card. The programs report that in the pages of their
 * jobs (protocol/page.h).
 *
 * A program reports work before its first kernel starts. So a load that looks here stops earlier than a load that
 * notices the kernel on the card. If no loadlined serves, the watch sees nothing, and the load uses its other sensors.
 *
 * The watch connects to loadlined, maps the pages of all jobs read-only, and keeps a list of the slots of its card. It
 * never waits, and has no thread: a look reads the list, and every 10 ms the socket. It starts no loadlined. When a
 * loadlined starts, the watch connects to it within a second. Without one the pages stay mapped, because programs go on
 * to write them.
 *
 * A watch is used by one thread.
 */

struct ll_job_watch {
	const struct ll_places *places; /* the caller's */
	const char *uuid;               /* of the card; the caller's */
	int fd;                         /* -1: not connected */
	bool is_welcome;                /* loadlined has replied to HELLO */
	bool has_warned;                /* about a page that cannot be read */
	uint64_t next_ns;               /* when to look at the socket, or to connect */
	uint64_t forget_ns;             /* when pages of a former loadlined are unmapped; 0: there are none */
	struct ll_watched_job *jobs;
	size_t count;
};

/* Starts to watch. Work that ended before is ignored. */
void ll_job_watch_begin(struct ll_job_watch *watch, const struct ll_places *places, const char *uuid, uint64_t now_ns);

/* Closes the connection and unmaps all pages. A watch that is all zeros is allowed. */
void ll_job_watch_end(struct ll_job_watch *watch);

/* Whether a governed program has work on the card, or had some since the last look. A look takes well under a
 * microsecond, plus some system calls every 10 ms. */
bool ll_job_watch_look(struct ll_job_watch *watch, uint64_t now_ns);

#endif
