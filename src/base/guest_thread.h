/*
 * guest_thread.h - a thread that a library starts in somebody else's program.
 *
 * All signals are blocked in it, so it handles none of the program's. The signal mask of the caller does not change.
 */
#ifndef LOADLINE_BASE_GUEST_THREAD_H
#define LOADLINE_BASE_GUEST_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* stack_bytes: 0: as much as the program's threads have. ret_id: the caller joins the thread; NULL: it is detached.
 * Returns 0 or -errno. */
int ll_guest_thread_start(size_t stack_bytes, void *(*entry)(void *), void *arg, pthread_t *ret_id);

#endif
