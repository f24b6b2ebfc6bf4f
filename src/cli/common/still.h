/*
 * still.h - says what a command waits for, if it still waits after a second: one line on standard error.
 */
#ifndef LOADLINE_CLI_COMMON_STILL_H
#define LOADLINE_CLI_COMMON_STILL_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* In the caller's memory, which stays where it is between begin and end. All zero: not begun. */
struct ll_still {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool is_begun, is_ended;
	char text[320];
};

/* Begins to wait: after a second a thread says the text. Without a thread nothing is said. */
void ll_still_begin(struct ll_still *still, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Nothing is said from here on. May be called again, and of what was not begun. */
void ll_still_end(struct ll_still *still);

/*
 * For a command that has something to put right before a signal ends it: it reads the signal instead.
 */

/* Blocks these signals in the calling thread, but those that are ignored, such as SIGHUP under nohup: they stay
 * ignored. *ret_before: the mask before. Returns a signalfd, closed on exec, that does not block; -1 with errno: the
 * signals are blocked, and there is none. */
int ll_endings_block(const int *signals, size_t count, sigset_t *ret_before);

#endif
