/*
 * nearest.h - finds the option or the command that a misspelt word means.
 */
#ifndef LOADLINE_CLI_OPTIONS_NEAREST_H
#define LOADLINE_CLI_OPTIONS_NEAREST_H

#include <stddef.h>

struct ll_command;
struct ll_option;

/* Returns the option of a table, or "help", which each command has, that is meant by a name of this length: the one
 * that other programs call so (elsewhere.h), else the nearest. NULL: none. */
const char *ll_nearest_option(const struct ll_option *options, const char *name, size_t length);

/* Returns the command of a NULL-ended list that is meant by a word: the one that other programs call so, which may have
 * options ("status --watch"), else the nearest. NULL: none. */
const char *ll_nearest_command(const struct ll_command *const *list, const char *word);

#endif
