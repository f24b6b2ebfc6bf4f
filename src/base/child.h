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

/*
 * Closes the descriptors from `first` on in the process. A C library without posix_spawn_file_actions_addclosefrom_np
 * (glibc before 2.34) closes those that are open now. Returns 0 or an errno.
 */
int ll_child_close_from(posix_spawn_file_actions_t *actions, int first);

#endif
