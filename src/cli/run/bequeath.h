/*
 * bequeath.h - leaves the settings of `loadline run` to the command in a second way: protocol/inherited.h finds them if
 * the environment is lost.
 */
#ifndef LOADLINE_CLI_RUN_BEQUEATH_H
#define LOADLINE_CLI_RUN_BEQUEATH_H

struct ll_run_settings;

/* Descriptors that the command inherits are from here on: programs may rely on low numbers of their own. */
enum { LL_RUN_FIRST_FD = 100 };

/*
 * Opens a file in memory with the settings, which nobody can change. Its descriptor stays open over exec. Without such
 * files (Linux before 3.17, no descriptor left) it does nothing: the environment is the first way.
 */
void ll_run_bequeath(const struct ll_run_settings *settings);

#endif
