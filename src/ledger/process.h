/*
 * process.h - which process is it, and is it still there.
 *
 * A pid alone may have been given to somebody else: pid and start time together are unique. Both mean something only
 * within one PID namespace and one time namespace, so a number made from the two goes with them. Where /proc is missing
 * the namespaces are 0 and nothing is ever known to be gone.
 */
#ifndef LOADLINE_LEDGER_PROCESS_H
#define LOADLINE_LEDGER_PROCESS_H

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
int ll_process_stat(const char *name, struct ll_process_stat *ret_stat);

/* This process. */
struct ll_process_id ll_process_self(void);

/* What identifies the caller's namespaces; 0 when unknown. */
uint64_t ll_process_namespaces(void);

/* Whether /proc has the numbers of the caller's PID namespace: after `unshare --pid --fork` without --mount-proc it has
 * those of the namespace above. */
bool ll_process_has_own_proc(void);

/* True only when it is certain: same namespaces, a /proc of them, and no such process, or a zombie, or one with another
 * start time. */
bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces);

#endif
