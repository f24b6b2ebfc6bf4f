/*
 * child.h - what processes of the program's own have in common.
 */
#ifndef LOADLINE_BASE_CHILD_H
#define LOADLINE_BASE_CHILD_H

#include <spawn.h>

/*
 * The process begins with those signals blocked that are sent to a whole process group or control group: there is no
 * moment in which a Ctrl-C could end it. SIGPIPE too, for a driver may complain to a stderr nobody reads. An errno.
 */
int ll_child_block_signals(posix_spawnattr_t *attr);

#endif
