/*
 * help_text.h - the output of --help, made from the option tables.
 */
#ifndef LOADLINE_CLI_OPTIONS_HELP_TEXT_H
#define LOADLINE_CLI_OPTIONS_HELP_TEXT_H

struct ll_command;
struct ll_command_part;
struct ll_option;
struct ll_strbuf;

/* Adds the output of "loadline --help", with these commands (command.h). */
void ll_help_program(const struct ll_command_part *parts, struct ll_strbuf *out);

/* Adds the output of "loadline COMMAND --help". */
void ll_help_command(const struct ll_command *command, struct ll_strbuf *out);

/* Adds the usage line after "loadline ", such as "hold [OPTION]...". NULL: the program's own usage. */
void ll_help_usage(const struct ll_command *command, struct ll_strbuf *out);

/* Adds an option's forms: "-t, --target LEVEL", "--sim[=SCENARIO]". */
void ll_help_signature(const struct ll_option *option, struct ll_strbuf *out);

/* Adds the option's help, the words that it takes, and its default. */
void ll_help_option(const struct ll_option *option, struct ll_strbuf *out);

extern const char ll_help_about[];

/* An exit status and its meaning. */
struct ll_help_status {
	int status;
	const char *meaning;
};

/* The exit statuses of the program, and of each command that has no list of its own; ended by a NULL meaning. */
extern const struct ll_help_status ll_help_statuses[];

#endif
