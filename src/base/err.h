/*
 * err.h - the error object that all functions share.
 *
 * A function that can fail returns 0 or a negative errno, and takes a `struct ll_err *err` last. err may be NULL. On
 * success it is not changed. On failure it has one line "what: why" and, if a user can act, a hint. Libraries never
 * print: main() prints the error once.
 *
 * The code also chooses the exit status (ll_err_exit_code):
 *
 *     -EINVAL           bad usage (a bad value, an unreadable option file)     2
 *     -ENODEV, -ENOSYS  no usable card, no driver, a driver without the call   3
 *     -EBUSY, -EDQUOT   a limit or a policy refuses                            4
 *     anything else     failed                                                 1
 *
 * If the output of a command cannot be written, its exit status is 1, whatever the errno (ll_err_exit_with). A command
 * with exit statuses of its own (`loadline run`) sets one in status.
 */
#ifndef LOADLINE_BASE_ERR_H
#define LOADLINE_BASE_ERR_H

struct ll_err {
	int code;       /* the negative errno that was returned, 0 when unset */
	char text[400]; /* "what: why", no newline */
	char hint[320]; /* "what to do", or empty */
	int status;     /* the exit status of the process; 0: it follows from the code. ll_err_set clears it */
};

/*
 * Sets text and code, clears the hint, and returns code: `return ll_err_set(err, -ENODEV, ...)`. Text and hint are
 * UTF-8. A byte that is not UTF-8, or a character that was cut, becomes '?'.
 */
int ll_err_set(struct ll_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Puts "context: " before the present text, and returns the present code. If err is NULL, it returns the code of this
 * thread's last ll_err_set.
 */
int ll_err_wrap(struct ll_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the hint, and returns a code as ll_err_wrap does. */
int ll_err_hint(struct ll_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the exit status, and returns a code as ll_err_wrap does. */
int ll_err_exit_with(struct ll_err *err, int status);

/* Returns the exit status of a process for a code; 0 gives 0. */
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
