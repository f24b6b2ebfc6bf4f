/*
 * env_sim.h - --sim: the simulated driver in place of the real one.
 *
 * The simulator's libraries have NVIDIA's file names. --sim puts their folder in front of the library search path, for
 * this program and for every program that it starts. The loader reads LD_LIBRARY_PATH only when a process starts, so
 * this program executes itself again.
 *
 * What the kernel driver answers is in a library that is preloaded (LL_SIM_KERNEL_LIBRARY), last, so that what programs
 * preload hears of their requests. A build for a sanitizer has none, as nothing may be preloaded there.
 */
#ifndef LOADLINE_CLI_COMMON_ENV_SIM_H
#define LOADLINE_CLI_COMMON_ENV_SIM_H

#include <limits.h>
#include <stdbool.h>

struct ll_err;
struct ll_strbuf;

/* This process was started with --sim. */
bool ll_sim_is_entered(void);

/* The folder of the simulated world then; NULL: the real cards. */
const char *ll_sim_entered_folder(void);

/*
 * Sets the environment and executes this program again with the same argv; then it does not return. Returns 0 if the
 * environment was set already. scenario: a file, the name of a file in the simulator's folder scenarios/, or "" for the
 * default scenario. -ENODEV: the simulator was not found. -EINVAL: no such scenario.
 */
int ll_sim_enter(const char *scenario, char **argv, struct ll_err *err);

/* Takes that library out of the environment, for a program into which nothing can be preloaded. */
void ll_sim_leave_kernel(void);

/* Prints the names that scenario may have, with what each stands for. -ENODEV: no simulator, or none with scenarios. */
int ll_sim_print_scenarios(struct ll_err *err);

/* Appends an advice to the user, or prints it: a text whose commands have the user's --sim (base/advice.h). */
void ll_sim_add_advice(struct ll_strbuf *text, const char *advice);
void ll_sim_print_advice(const char *advice);

/*
 * Finds files that were built or installed together with this program, by the path of the program's own
 * file.
 */

/* Writes the folder of this program's file. -errno if /proc does not tell it. */
int ll_beside_folder(char ret_folder[PATH_MAX], struct ll_err *err);

/* Searches the folders in their order for a readable file of this name, and writes its real path. folders is
 * NULL-ended, and relative to the program's own folder. -ENOENT: no folder has the file. */
int ll_beside_find(const char *const *folders, const char *name, char ret_path[PATH_MAX]);

#endif
