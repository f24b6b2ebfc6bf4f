/*
 * elsewhere.h - the names that other programs give to what loadline has: docker's --gpus, Slurm's --time, top. Whoever
 * tries one is told loadline's own name.
 */
#ifndef LOADLINE_CLI_OPTIONS_ELSEWHERE_H
#define LOADLINE_CLI_OPTIONS_ELSEWHERE_H

#include <stddef.h>

struct ll_command;
struct ll_option;

/* Returns the option of the table that other programs call so. name has this length. NULL: the table has none. */
const char *ll_elsewhere_option(const struct ll_option *options, const char *name, size_t length);

/* The same for an option of one letter. */
const char *ll_elsewhere_letter(const struct ll_option *options, char letter);

/* Returns the command of the NULL-ended list that does what other programs call so, with its options ("status
 * --watch"). NULL: the list has none. */
const char *ll_elsewhere_command(const struct ll_command *const *list, const char *name);

#endif
