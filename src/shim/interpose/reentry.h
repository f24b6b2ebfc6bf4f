/*
 * reentry.h - telling the program's calls into the driver from those that are made on our behalf.
 *
 * While a hook is at work, the driver may call exported functions of its own, which land in our hooks again, and so do
 * libraries that the driver calls. What is inside is passed on as it is: it was accounted for by the outermost call.
 * The depth is the thread's own; initial-exec, because reading it must not allocate.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_REENTRY_H
#define LOADLINE_SHIM_INTERPOSE_REENTRY_H

#include <errno.h>
#include <stdbool.h>

extern _Thread_local unsigned ll_reentry_depth __attribute__((tls_model("initial-exec")));

static inline bool ll_reentry_is_inside(void)
{
	return ll_reentry_depth > 0;
}

/* Until the end of the scope this thread is inside, and errno is put back at its end. A thread that is cancelled, or
 * thrown through, leaves it too. */
#define LL_REENTRY_SCOPE() int reentry_errno_ __attribute__((cleanup(ll_reentry_leave), unused)) = ll_reentry_enter()

static inline int ll_reentry_enter(void)
{
	ll_reentry_depth++;
	return errno;
}

static inline void ll_reentry_leave(const int *errno_before)
{
	ll_reentry_depth--;
	errno = *errno_before;
}

#endif
