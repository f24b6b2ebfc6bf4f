/*
 * terminal.h - writes a line to where a job's first process writes its errors: a terminal, a pipe, or a file.
 */
#ifndef LOADLINE_MONITOR_TERMINAL_H
#define LOADLINE_MONITOR_TERMINAL_H

/*
 * Writes "loadline: TEXT" with a newline to the standard error of the process (process.h). The caller ignores SIGPIPE.
 * Never waits: a terminal that was stopped by Ctrl-S, and a full pipe, get nothing. A file that the process does not
 * append to is written only if the process's own descriptor can be used (pidfd_getfd: Linux 5.6, and the kernel allows
 * it): the process would write over the line otherwise. 0, or -errno: nothing was written; -ESRCH: the process has
 * ended.
 */
int ll_terminal_say(int process_fd, const char *text);

#endif
