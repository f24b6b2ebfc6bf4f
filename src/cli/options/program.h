/*
 * program.h - what the programs loadline, loadline-probe, loadline-top and loadline-trace have in common: the global
 * options, the search for the command, the message of an error and the exit status.
 *
 * loadline has all commands. A command without a function run has a program of its own, loadline-NAME, so that loadline
 * stays small: loadline executes it with its own words and environment. That program has this one command.
 */
#ifndef LOADLINE_CLI_OPTIONS_PROGRAM_H
#define LOADLINE_CLI_OPTIONS_PROGRAM_H

#include <stddef.h>

#include "cli/options/command.h"

struct ll_command;
struct ll_option;

struct ll_program {
	const struct ll_command *const *commands; /* NULL-ended */
	const struct ll_command_part *parts;      /* for --help; NULL: it prints the help of the first command */
	ll_command_run_fn *run;                   /* runs a command that has no function of its own; NULL: see above */
	/* Whether this process is a worker that the program started itself. If so, serve does its work, and writes what
	 * a command would return. NULL: the program has no workers. */
	bool (*serve)(int argc, char **argv, int *ret_rc, struct ll_err *err);
};

/* Runs the program. Returns its exit status; an error's message is on standard error. */
int ll_program_main(const struct ll_program *program, int argc, char **argv);

/* Runs a command that has a function of its own, as loadline does with these words. argv[0] is the command's name, and
 * NULL stands after the last word. Returns what the command returns; it prints no error. */
int ll_program_run_command(const struct ll_command *command, int argc, char **argv, struct ll_err *err);

/* Prints the message of an error, as ll_program_main does, and returns the exit status. For a forked child. */
int ll_program_print_error(const struct ll_err *err);

/*
 * The names that other programs give to what loadline has: docker's --gpus, Slurm's --time, ps. Whoever
 * tries one is told loadline's own name.
 */

/* Returns the option of the table that other programs call so. name has this length. NULL: the table has none. */
const char *ll_elsewhere_option(const struct ll_option *options, const char *name, size_t length);

/* The same for an option of one letter. */
const char *ll_elsewhere_letter(const struct ll_option *options, char letter);

/* Returns the command of the NULL-ended list that does what other programs call so. NULL: the list has none. */
const char *ll_elsewhere_command(const struct ll_command *const *list, const char *name);

#endif
