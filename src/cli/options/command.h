/*
 * command.h - one struct per subcommand, one file per struct (cmd_hold.c has ll_command_hold). The list in
 * `loadline --help`, the man pages and the completions are made from these.
 *
 * A command may be a group of commands (`loadline mps start`): then it has rows of its own kind in subcommands, and its
 * first operand names one. The manual has one page for all of a group.
 *
 * To add a command: write cmd_<name>.c with `const struct ll_command ll_command_<name>` and add its row to
 * commands.def; the build reads that too.
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

struct ll_command {
	const char *name;
	const struct ll_command *group;              /* whose subcommand it is; NULL: a command of its own */
	const struct ll_command *const *subcommands; /* NULL-ended; then run is NULL, and there are no options */
	const char *summary;                   /* "keep a card at a chosen utilisation"; lower case, no full stop */
	const char *operands;                  /* shown in the usage line: "COMMAND [ARG]..."; NULL: it takes none */
	const char *description;               /* see wrap.h; for --help and the man page */
	const struct ll_example *examples;     /* ended by a NULL line; may be NULL */
	const struct ll_option *options;       /* ended by LL_OPTION_END */
	size_t args_size;                      /* of the struct that the options fill; zeroed before */
	bool takes_command;                    /* the first operand ends the options */
	enum ll_option_complete complete;      /* what the shell offers for operands */
	int failure_status;                    /* of every error that names none itself; 0: as err.h says */
	const struct ll_help_status *statuses; /* ended by a NULL meaning; NULL: ll_help_statuses (help_text.h) */

	/*
	 * Does it. Returns 0, or a negative errno with err set, which main prints and turns into the exit status
	 * (err.h), or a positive exit status to end with as it is, nothing printed. args is the filled struct.
	 */
	int (*run)(void *args, const struct ll_operands *operands, struct ll_err *err);
};

#define LL_COMMAND(name) extern const struct ll_command ll_command_##name;
#include "cli/options/commands.def"
#undef LL_COMMAND

/* All commands, NULL-ended, in the order of the help. */
extern const struct ll_command *const ll_commands[];

/* The command of that name, or NULL. */
const struct ll_command *ll_command_find(const char *name);

/* The same in a NULL-ended list. */
const struct ll_command *ll_command_find_in(const struct ll_command *const *list, const char *name);

/* How users write it: "run", "mps start". between: what stands between the two words. Writes to text, returns it. */
enum { LL_COMMAND_NAME_SIZE = 64 };
const char *ll_command_name(const struct ll_command *command, char between, char text[LL_COMMAND_NAME_SIZE]);

/* The names of a list: "start, stop or env". */
void ll_command_add_names(const struct ll_command *const *list, const char *separator, struct ll_strbuf *out);

#endif
