/*
 * reentry.h - distinguishes the program's calls of the driver from calls that the driver itself makes.
 *
 * While a hook runs, the driver may call its own exported functions, and so may libraries that the driver calls. Such
 * calls reach the hooks again. A hook passes them to the driver unchanged, because the outermost call is charged for
 * them. Each thread has its own depth. The TLS model is initial-exec, because reading the depth must not allocate
 * memory.
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

/* The thread is inside until the end of the scope, which also restores errno. The scope also ends if the thread is
 * cancelled or an exception unwinds it. */
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
