/*
 * serve.h - takes events from loadlined, and runs their commands: at most LL_NOTIFY_AT_A_TIME at a time. While so many
 * run, nothing is read, and loadlined keeps the events that follow.
 */
#ifndef LOADLINE_NOTIFY_SERVE_H
#define LOADLINE_NOTIFY_SERVE_H

#include <stdint.h>

#include "notify/hook.h"

enum { LL_NOTIFY_AT_A_TIME = 4 };

struct ll_notify_settings {
	struct ll_hook_rules rules;
	uint64_t deadline_ns; /* then the command is ended, with all processes of its group */
};

/* Serves the listening socket until SIGTERM or SIGINT; commands that run are ended then. Logs each command that is not
 * allowed, fails, or does not end in time. Returns -errno if the socket cannot be used. */
int ll_notify_serve(const struct ll_notify_settings *settings, int listen_fd);

#endif
