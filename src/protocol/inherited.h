/*
 * inherited.h - finds the tenant of a process, also if the process got a new environment.
 *
 * Programs that make an environment for the programs that they start (Python's subprocess(env=...), wrappers) often
 * keep LD_PRELOAD and lose LOADLINE_RUN. So `run` also writes the settings to a file in memory, and leaves its
 * descriptor open for the command. The settings are looked for in this order:
 *
 *   1. the environment as it is now;
 *   2. the environment with which the process began, and its descriptors;
 *   3. the same of its parent, of the parent's parent, and so on. Only processes of the caller's user are asked. A
 *      parent that has ended is not found, nor are those above it.
 *
 * A tenant is not found if the process has a new environment, has none of the descriptors (Python closes them) and its
 * parent has ended.
 */
#ifndef LOADLINE_PROTOCOL_INHERITED_H
#define LOADLINE_PROTOCOL_INHERITED_H

struct ll_run_settings;

/* Name of the file in memory. */
#define LL_RUN_FILE "loadline-run"

/*
 * Finds the settings of the tenant to which this process belongs. -ENOENT: it belongs to none, as far as can be seen.
 * -EINVAL: settings were found, and are garbled (run_settings.h). If LOADLINE_RUN is set, nothing else is looked at.
 * Else it takes some 50 µs for each parent. Keeps errno.
 */
int ll_run_settings_find(struct ll_run_settings *ret_settings);

/* The same of another process, for commands: the environment with which it began, and its descriptors. -ENOENT also if
 * it is another user's, or has ended. */
int ll_run_settings_of_process(int pid, struct ll_run_settings *ret_settings);

#endif
