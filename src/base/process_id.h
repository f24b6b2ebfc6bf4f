/*
 * process_id.h - the identity of a process in numbers, and whether the process is still there.
 *
 * A pid is given to another process later: pid and start time together are unique. Both have a meaning only within one
 * PID namespace and one time namespace, so a number made from the two namespaces goes with them. If /proc is missing,
 * that number is 0, and no process is known to be gone.
 */
#ifndef LOADLINE_BASE_PROCESS_ID_H
#define LOADLINE_BASE_PROCESS_ID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_process_id {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t namespaces;
};

/* What /proc tells of a process, by its number there or "self". -ENOENT or -ESRCH: there is none. */
struct ll_process_stat {
	pid_t pid; /* in the PID namespace of /proc */
	uint64_t start_ticks;
	bool is_dead; /* a zombie */
};
int ll_process_read_stat(const char *name, struct ll_process_stat *ret_stat);

/* This process. */
struct ll_process_id ll_process_self(void);

/* Returns the number of the caller's namespaces; 0: it is not known. */
uint64_t ll_process_namespaces(void);

/* Whether /proc has the numbers of the caller's PID namespace. After `unshare --pid --fork` without --mount-proc it has
 * those of the namespace above. */
bool ll_process_has_own_proc(void);

/* Whether the process is gone for certain: the namespaces are the caller's, /proc is theirs, and it has no such
 * process, or a zombie, or one with another start time. */
bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces);

#endif
