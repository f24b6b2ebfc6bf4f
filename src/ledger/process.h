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

/* This process. */
struct ll_process_id ll_process_self(void);

/* What identifies the caller's namespaces; 0 when unknown. */
uint64_t ll_process_namespaces(void);

/* True only when it is certain: same namespaces, and no such process, or a zombie, or one with another start time. */
bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces);

#endif
