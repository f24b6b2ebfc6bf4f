/*
 * launch.h - starts the traced command, watches it and waits for its end.
 *
 * The command is a child in the caller's process group. Ctrl-C ends the command but not loadline, so that loadline can
 * print the summary. loadline passes other signals that ask a program to end on to the command.
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
	char folder[PATH_MAX];  /* folder of the records */
	char cupti[PATH_MAX];   /* libcupti's file; "": not found */
	char library[PATH_MAX]; /* libloadline-trace.so */
	char events[PATH_MAX];  /* libloadline-events.so; "": not preloaded */
	uint64_t most_events;
	bool is_preloaded; /* false: only the driver loads the library, and the library for events is not used */
};

/* Finds libloadline-trace.so: the file that LOADLINE_TRACE_LIBRARY names, or the one installed with loadline. -ENOENT,
 * -EINVAL. */
int ll_trace_find_library(char ret_path[PATH_MAX], struct ll_err *err);

/* Finds libloadline-events.so: the file that LOADLINE_EVENTS_LIBRARY names, or the one installed with loadline.
 * -ENOENT, -EINVAL. */
int ll_trace_find_events_library(char ret_path[PATH_MAX], struct ll_err *err);

/*
 * Runs path with these words, and calls the sampler until the command ends. *ret_status: the exit status as a shell
 * gives it, 128 and the signal's number for a killed command. An error means that the command was not started; err's
 * exit status is 126 or 127 if exec failed.
 */
int ll_trace_start_program(const struct ll_trace_how *how, const char *path, char **words, struct ll_sampler *sampler,
			   int *ret_status, struct ll_err *err);

#endif
