/*
 * hook.h - one run of a command of `notify`.
 */
#ifndef LOADLINE_NOTIFY_HOOK_H
#define LOADLINE_NOTIFY_HOOK_H

#include <limits.h>
#include <sys/types.h>

#include "protocol/message_event.h"

struct ll_err;

enum { LL_HOOK_FOLDERS = 8, LL_HOOK_NO_EXEC = 127 };

/* Where commands may lie, and whose they may be. */
struct ll_hook_rules {
	const char *folders[LL_HOOK_FOLDERS]; /* absolute, ended by NULL if there are fewer */
	uid_t owner;                          /* beside root */
};

/*
 * Checks a command: an absolute path, below one of the folders; a file that can be executed. The file, and each folder
 * above it, belongs to root or the owner, and nobody else may write to it. So loadlined, which parses what any user
 * sends, can start nothing but what an administrator has put there. ret_resolved: the path without symbolic links,
 * which is to be started, since somebody else may own a link. -EACCES: it is not allowed; err says why. -errno: of the
 * system call that failed.
 */
int ll_hook_check(const struct ll_hook_rules *rules, const char *path, char ret_resolved[PATH_MAX], struct ll_err *err);

/*
 * Starts the command at that path, in a process group of its own. Its standard input is the event as JSON,
 * and it writes to the standard error of this process. -errno: no process could be made. If the command
 * cannot be executed, the process ends with LL_HOOK_NO_EXEC.
 */
int ll_hook_start(const struct ll_message_event *event, const char *path, pid_t *ret_pid);

#endif
