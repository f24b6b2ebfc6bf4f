/*
 * watch.h - does work in a thread of its own, while this one shows how far it is, and takes signals.
 */
#ifndef LOADLINE_CLI_EVICT_WATCH_H
#define LOADLINE_CLI_EVICT_WATCH_H

#include "base/strbuf.h"
#include "cli/evict/evictor.h"

struct ll_evict_watch {
	void (*work)(void *data);                             /* in its thread */
	void (*describe)(void *data, struct ll_strbuf *text); /* in this one, meanwhile: what goes on, in a line */
	void (*on_first_signal)(void *data); /* in this one, after interrupt is set and before anything is said */
	void *data;
	const char *on_signal; /* what is said at the first signal: what happens now, and how to end it */
	/* what describe says stands on standard error, which is a terminal. Otherwise it is a line there, if the work
	 * takes more than a moment, and again when loadlined says another reason */
	bool is_shown;
	struct ll_evict_interrupt interrupt; /* set at the first signal; the caller hands it to its work before */
};

/* Makes interrupt ready. Without a descriptor for it the work cannot be interrupted. */
void ll_evict_watch_init(struct ll_evict_watch *watch);
void ll_evict_watch_fini(struct ll_evict_watch *watch);

/*
 * Returns when the work is over: the number of the first signal that asked this program to end (SIGINT, SIGTERM,
 * SIGHUP), or 0. A second one ends this program at once.
 */
int ll_evict_watch_run(struct ll_evict_watch *watch);

#endif
