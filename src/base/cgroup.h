/*
 * cgroup.h - the control group of a process.
 */
#ifndef LOADLINE_BASE_CGROUP_H
#define LOADLINE_BASE_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes the path of the group whose end would end the process: the group of version 2, or if that is the root, the
 * deepest group of version 1. "/": only the root. The path may be cut. pid 0: this process. -errno: /proc does not have
 * it.
 */
int ll_cgroup_read(pid_t pid, char *ret_path, size_t size);

/* The same from the text of /proc/PID/cgroup. The function changes the text. */
void ll_cgroup_choose(char *text, char *ret_path, size_t size);

#endif
