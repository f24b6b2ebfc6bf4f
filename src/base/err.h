/*
 * err.h - the one error object.
 *
 * A function that can fail returns 0 or a negative errno and takes a
 * `struct ll_err *err` last. err may be NULL. On success it is not touched. On
 * failure it holds one line "what: why" and, where a user can do something
 * about it, a hint. Libraries never print: main() prints the error once.
 *
 * The code also chooses the exit status (ll_err_exit_code):
 *   -EINVAL           bad usage (a bad value, an unreadable option file)     2
 *   -ENODEV, -ENOSYS  no usable card, no driver, a driver without the call   3
 *   -EBUSY, -EDQUOT   a limit or a policy refuses                            4
 *   anything else     failed                                                 1
 * An output that cannot be written is 1 in every command, whatever the errno: ll_err_exit_with.
 * A command with exit statuses of its own (`loadline run`) names one in status.
 */
#ifndef LOADLINE_BASE_ERR_H
#define LOADLINE_BASE_ERR_H

struct ll_err {
	int code;       /* the negative errno that was returned, 0 when unset */
	char text[400]; /* "what: why", no newline */
	char hint[320]; /* "what to do", or empty */
	int status;     /* the exit status to end with; 0: the one of the code. ll_err_set clears it */
};

/*
 * Sets text and code, clears the hint, returns code: `return ll_err_set(err, -ENODEV, ...)`. Text and hint are UTF-8:
 * where a word of them was cut within a character, or was no UTF-8, there is '?'.
 */
int ll_err_set(struct ll_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Puts "context: " before the text that is there; returns the code that is there. Where err is NULL that is the code of
 * this thread's last ll_err_set.
 */
int ll_err_wrap(struct ll_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the hint; returns the code that is there, as ll_err_wrap does. */
int ll_err_hint(struct ll_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Names the exit status to end with; returns the code that is there, as ll_err_wrap does. */
int ll_err_exit_with(struct ll_err *err, int status);

/* The process exit status for a code returned by a function (0 gives 0). */
int ll_err_exit_code(int code);

enum {
	LL_EXIT_OK = 0,
	LL_EXIT_FAILED = 1,
	LL_EXIT_USAGE = 2,
	LL_EXIT_NO_CARD = 3,
	LL_EXIT_REFUSED = 4,
	LL_EXIT_SKIPPED = 77, /* tests only */
};

#endif
