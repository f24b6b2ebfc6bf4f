/*
 * launch.h - the traced command: its environment, its life, its end.
 *
 * It is a child in the caller's process group: Ctrl-C goes to it and not to us, so that the summary still comes; other
 * signals that ask a program to end are passed on to it.
 */
#ifndef LOADLINE_CLI_TRACE_LAUNCH_H
#define LOADLINE_CLI_TRACE_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct ll_err;
struct ll_sampler;

enum ll_trace_by { LL_TRACE_BY_AUTO, LL_TRACE_BY_CUPTI, LL_TRACE_BY_EVENTS };

struct ll_trace_how {
	enum ll_trace_by by;
	char folder[PATH_MAX];  /* where the records go */
	char cupti[PATH_MAX];   /* "": none was found */
	char library[PATH_MAX]; /* libloadline-trace.so */
	char events[PATH_MAX];  /* libloadline-events.so; "": not put in front of the driver */
	uint64_t most_events;
	bool is_preloaded; /* false: the driver alone loads the library, and the one for events is left out */
};

/* libloadline-trace.so: LOADLINE_TRACE_LIBRARY, or the one that came with loadline. -ENOENT, -EINVAL. */
int ll_trace_find_library(char ret_path[PATH_MAX], struct ll_err *err);

/* libloadline-events.so: LOADLINE_EVENTS_LIBRARY, or the one that came with loadline. -ENOENT, -EINVAL. */
int ll_trace_find_events_library(char ret_path[PATH_MAX], struct ll_err *err);

/*
 * Runs path with these words and looks at it with the sampler until it ends. *ret_status: as a shell gives it, 128 and
 * the signal's number for one that was killed. An error: it was not started; its status is 126 or 127 where exec said
 * so.
 */
int ll_trace_launch(const struct ll_trace_how *how, const char *path, char **words, struct ll_sampler *sampler,
		    int *ret_status, struct ll_err *err);

#endif
