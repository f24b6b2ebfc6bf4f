/*
 * watch.h - keeps the fence closed: closes control groups that appear, and follows the configuration, until a signal.
 */
#ifndef LOADLINE_FENCE_WATCH_H
#define LOADLINE_FENCE_WATCH_H

#include "fence/fence.h"

/* Whether the fence shall be closed; called at the beginning and at SIGHUP. Returns 1, 0, or -errno: then it stays as
 * it is. */
typedef int (*ll_fence_wants_fn)(void *data);

/*
 * Closes the fence if it is wanted, and keeps it so. At SIGTERM and SIGINT it opens the fence and returns 0. If this
 * process is killed, the fence stays closed. The kernel reports new groups (inotify), and all are looked at again each
 * 5 s, also for devices of a driver that was loaded meanwhile. Returns -errno if the fence could not be closed at
 * first.
 */
int ll_fence_watch(struct ll_fence *fence, ll_fence_wants_fn wants, void *data, struct ll_err *err);

#endif
