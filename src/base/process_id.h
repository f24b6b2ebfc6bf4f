/*
 * process_id.h - the identity of a process in numbers, and whether the process still exists.
 *
 * A pid is reused for later processes; a pid and a start time together are unique. Both have a meaning only within one
 * PID namespace and one time namespace. So a number made from the two namespaces is part of the identity. If /proc is
 * missing, that number is 0, and no process is known to be gone.
 */
#ifndef LOADLINE_BASE_PROCESS_ID_H
#define LOADLINE_BASE_PROCESS_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_process_id {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t namespaces;
};

/* The data of a process in /proc. name: its pid there, or "self". -ENOENT or -ESRCH: there is no such process. */
struct ll_process_stat {
	pid_t pid, parent; /* in the PID namespace of /proc */
	uint64_t start_ticks;
	bool is_dead;     /* a zombie */
	bool is_exiting;  /* its first thread ends, or has ended: the kernel closes its files one after the other */
	bool is_runnable; /* its first thread runs, or waits for a processor */
	bool is_stopped;  /* by a signal, as by Ctrl-Z, or by a debugger */
};
/* The text of such a file. -EIO: it is none. */
int ll_process_parse_stat(const char *text, struct ll_process_stat *ret_stat);
int ll_process_read_stat(const char *name, struct ll_process_stat *ret_stat);
int ll_process_stat_of(pid_t pid, struct ll_process_stat *ret_stat);

/* Reads the beginning of /proc/PID/NAME into the text, which ends with a NUL. pid 0: this process. Returns its length,
 * or -errno: then the text is empty. */
ssize_t ll_process_read_file(pid_t pid, const char *name, char *ret_text, size_t size);

/* Reads the real, effective, saved and file system uid from the text of /proc/PID/status. False: it has none. The name
 * of the process is in the first line, where a line break is escaped. */
bool ll_process_parse_uids(const char *status, uint32_t ret_uids[4]);

/* Whether the process is in a PID namespace below that of /proc, as in most containers: from the same text, or read.
 * What cannot be read is not. */
bool ll_process_parse_nested(const char *status);
bool ll_process_is_nested(pid_t pid);

/* This process. */
struct ll_process_id ll_process_self(void);

/* Returns the number of the caller's namespaces; 0: unknown. */
uint64_t ll_process_namespaces(void);

/* Whether /proc shows the caller's PID namespace. After `unshare --pid --fork` without --mount-proc it shows the
 * namespace above. */
bool ll_process_has_own_proc(void);

/* Whether it is certain that the process is gone: the namespaces are the caller's, /proc shows them, and the process is
 * missing there, is a zombie, or has another start time. */
bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces);

#endif
