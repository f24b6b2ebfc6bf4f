/*
 * endings.h - for a command that has something to put right before a signal ends it: it reads the signal instead.
 */
#ifndef LOADLINE_CLI_COMMON_ENDINGS_H
#define LOADLINE_CLI_COMMON_ENDINGS_H

#include <signal.h>
#include <stddef.h>

/* Blocks these signals in the calling thread, but those that are ignored, such as SIGHUP under nohup: they stay
 * ignored. *ret_before: the mask before. Returns a signalfd, closed on exec, that does not block; -1 with errno: the
 * signals are blocked, and there is none. */
int ll_endings_block(const int *signals, size_t count, sigset_t *ret_before);

#endif
