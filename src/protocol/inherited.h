/*
 * inherited.h - finds the tenant of a process, also if the process has a new environment.
 *
 * Some programs make an environment for the programs that they start (Python's subprocess(env=...), wrappers). They
 * often keep LD_PRELOAD and lose LOADLINE_RUN. So `run` also writes the settings to a memfd, and leaves its descriptor
 * open for the command. The settings are looked for in this order:
 *
 *   1. the present environment of the process;
 *   2. the environment with which the process began, and its descriptors;
 *   3. the same two of its parent, of the parent's parent, and so on. Only processes of the
 *      caller's user are read. The search ends at a parent that has ended.
 *
 * A tenant is not found if the process has a new environment, has none of the descriptors (Python closes them) and its
 * parent has ended.
 */
#ifndef LOADLINE_PROTOCOL_INHERITED_H
#define LOADLINE_PROTOCOL_INHERITED_H

struct ll_run_settings;

/* Name of the memfd. */
#define LL_RUN_FILE "loadline-run"

/*
 * Finds the settings of the tenant to which this process belongs. -ENOENT: no settings were found. -EINVAL: settings
 * were found, and are malformed (run_settings.h). If LOADLINE_RUN is set, only LOADLINE_RUN is read. Otherwise the
 * search takes about 50 µs for each parent. The function preserves errno.
 */
int ll_run_settings_find(struct ll_run_settings *ret_settings);

/* The same for another process; commands use it. It reads the environment with which the process began, and its
 * descriptors. It also returns -ENOENT if the process is another user's or has ended. */
int ll_run_settings_of_process(int pid, struct ll_run_settings *ret_settings);

#endif
