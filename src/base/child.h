/*
 * child.h - what the processes have in common that our programs start for themselves.
 */
#ifndef LOADLINE_BASE_CHILD_H
#define LOADLINE_BASE_CHILD_H

#include <spawn.h>

/*
 * Lets the process begin with those signals blocked that are sent to a whole process group or control group. So there
 * is no moment in which a Ctrl-C could end it. SIGPIPE is blocked too, because a driver may write to a stderr that
 * nobody reads. Returns 0 or an errno.
 */
int ll_child_block_signals(posix_spawnattr_t *attr);

#endif
