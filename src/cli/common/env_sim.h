/*
 * env_sim.h - --sim: the simulated driver in place of the real one.
 *
 * The simulator's libraries have NVIDIA's file names, so all it takes is a search path that begins with their folder,
 * for this program and for every program that it starts. The loader reads LD_LIBRARY_PATH only at the start of a
 * process: the program runs itself again.
 */
#ifndef LOADLINE_CLI_COMMON_ENV_SIM_H
#define LOADLINE_CLI_COMMON_ENV_SIM_H

#include <stdbool.h>

struct ll_err;
struct ll_strbuf;

/* This process was started with --sim. */
bool ll_sim_is_entered(void);

/*
 * Sets the environment and runs this program again with the same argv; does not return then. Returns 0 when the
 * environment is already so. scenario: a file, the name of one in the simulator's folder scenarios/, or "" for
 * its default. -ENODEV: there is no simulator here. -EINVAL: no such scenario.
 */
int ll_sim_enter(const char *scenario, char **argv, struct ll_err *err);

/*
 * Appends what a user is advised to do. In a process that was started with --sim, quoted commands of loadline get that
 * option, and a command for a real card becomes the simulator's. Where advice is made it is not known whether the card
 * is simulated.
 */
void ll_sim_add_advice(struct ll_strbuf *text, const char *advice);

#endif
