/*
 * cgroup.h - the control group of a process.
 */
#ifndef LOADLINE_BASE_CGROUP_H
#define LOADLINE_BASE_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes the path of the group whose end would end the process: that of version 2, or if it is the root, the deepest
 * one of version 1. "/": no group but the root. Perhaps cut. 0: this process. -errno: /proc does not tell.
 */
int ll_cgroup_read(pid_t pid, char *ret_path, size_t size);

/* The same from the text of /proc/PID/cgroup, which is changed. */
void ll_cgroup_choose(char *text, char *ret_path, size_t size);

#endif
