/*
 * cgroup.h - the control group of a process.
 */
#ifndef LOADLINE_BASE_CGROUP_H
#define LOADLINE_BASE_CGROUP_H

#include <stdbool.h>
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

/*
 * The control group of a job of Slurm, in which all of the job's processes on this machine are: the part of a path up
 * to "job_N". Only root can make such a path: of version 1 it begins with "/slurm", of version 2 it is below
 * slurmstepd's scope, at the root or in system.slice. Slurm of several nodes on one machine has the node's name in it.
 */

/* Whether the group is slurmstepd's scope, or below it. */
bool ll_cgroup_is_in_slurm_scope(const char *path);

/* From a path of one hierarchy. Returns false if it is none. */
bool ll_cgroup_slurm_job(const char *path, char *ret_job, size_t size);

/* From the text of /proc/PID/cgroup. Returns false if the text has none. */
bool ll_cgroup_choose_slurm_job(const char *text, char *ret_job, size_t size);

/* Of a process; 0: this one. -ENOENT: it is in no job of Slurm. -errno: /proc does not have it. */
int ll_cgroup_read_slurm_job(pid_t pid, char *ret_job, size_t size);

#endif
