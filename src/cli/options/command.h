/*
 * command.h - the description of a command: one struct for each command, in a file of its own (cmd_hold.c has
 * ll_command_hold). The list in `loadline --help`, the manual pages and the completions are made from these structs.
 *
 * A command may be a group of commands, as in `loadline mps start`. Then the field subcommands lists its commands, and
 * the first operand names one of them. A group and its commands have one manual page.
 *
 * CONTRIBUTING.md says how to add a command.
 */
#ifndef LOADLINE_CLI_OPTIONS_COMMAND_H
#define LOADLINE_CLI_OPTIONS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/options/option.h"

struct ll_help_status;
struct ll_strbuf;

struct ll_example {
	const char *line; /* "loadline hold --target 30% --for 1h" */
	const char *does; /* "Hold 30 % for an hour." */
};

/*
 * args: the struct that the options filled. Returns 0; or a negative errno with err set, which the program prints and
 * turns into the exit status (err.h); or a positive exit status, for which the program prints nothing.
 */
typedef int ll_command_run_fn(void *args, const struct ll_operands *operands, struct ll_err *err);

struct ll_command {
	const char *name;
	const struct ll_command *group; /* the group of a subcommand; NULL: not a subcommand */
	const struct ll_command *const
	    *subcommands; /* the commands of a group, NULL-ended. A group may have options and `run` of its own, if the
			     first word after its name is none of the commands */
	const char *summary;     /* "keep a card at a chosen utilisation"; lower case, no full stop */
	const char *operands;    /* shown in the usage line: "COMMAND [ARG]..."; NULL: the command takes no operands */
	const char *description; /* for --help and the manual page; its format is in help_text.h */
	const struct ll_example *examples;     /* ended by a NULL line; may be NULL */
	const struct ll_option *options;       /* ended by LL_OPTION_END */
	size_t args_size;                      /* size of the struct that the options fill; main zeroes it before */
	bool takes_command;                    /* the first operand ends the options */
	enum ll_option_complete complete;      /* what the shell completes operands with */
	int failure_status;                    /* exit status of errors that name none themselves; 0: as err.h says */
	const struct ll_help_status *statuses; /* ended by a NULL meaning; NULL: ll_help_statuses (help_text.h) */

	ll_command_run_fn *run; /* NULL without subcommands: the program loadline-NAME runs it (program.h) */
};

#define LL_COMMAND_PART(title)
#define LL_COMMAND(name) extern const struct ll_command ll_command_##name;
#include "cli/options/commands.def"
#undef LL_COMMAND
#undef LL_COMMAND_PART

/* All commands, NULL-ended, in the order of the help. */
extern const struct ll_command *const ll_commands[];

/* The same with the titles of the help's parts: each row is a title, or a command of the title above. Ended by a row of
 * neither. */
struct ll_command_part {
	const char *title;
	const struct ll_command *command;
};
extern const struct ll_command_part ll_command_parts[];

/* Returns the command of that name, or NULL. */
const struct ll_command *ll_command_find(const char *name);

/* The same in a NULL-ended list. */
const struct ll_command *ll_command_find_in(const struct ll_command *const *list, const char *name);

/* Writes the command's name as users write it ("run", "mps start") to text, and returns text. between: the character
 * between the two words. */
enum { LL_COMMAND_NAME_SIZE = 64 };
const char *ll_command_name(const struct ll_command *command, char between, char text[LL_COMMAND_NAME_SIZE]);

/* Adds the names of a list, with the separator between: "start, stop, env". */
void ll_command_add_names(const struct ll_command *const *list, const char *separator, struct ll_strbuf *out);

#endif
