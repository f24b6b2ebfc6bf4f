/*
 * launchers.h - commands that have the work started by somebody else: a daemon, another host, a container's runtime.
 *
 * `run` governs a command and all that it starts. What such a command has started is none of its children, or has an
 * environment of its own, so the limits of `run` do not reach it. `run` knows the usual ones by their names, also
 * behind programs that run another command (env, nice, timeout, ...). A script that starts one of them is not known.
 */
#ifndef LOADLINE_CLI_RUN_LAUNCHERS_H
#define LOADLINE_CLI_RUN_LAUNCHERS_H

struct ll_err;

/*
 * Looks whether a command is one of them. words: the command and its arguments, NULL-ended. -EREMOTE: it is; err says
 * who starts the work, and its hint how to put loadline inside.
 */
int ll_launchers_check(char *const *words, struct ll_err *err);

#endif
