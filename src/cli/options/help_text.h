/*
 * help_text.h - what --help prints, made from the option tables.
 */
#ifndef LOADLINE_CLI_OPTIONS_HELP_TEXT_H
#define LOADLINE_CLI_OPTIONS_HELP_TEXT_H

struct ll_command;
struct ll_option;
struct ll_strbuf;

/* "loadline --help". */
void ll_help_program(struct ll_strbuf *out);

/* "loadline COMMAND --help". */
void ll_help_command(const struct ll_command *command, struct ll_strbuf *out);

/* What follows "loadline ": "hold [OPTION]...", or the program's own for NULL. */
void ll_help_usage(const struct ll_command *command, struct ll_strbuf *out);

/* "-t, --target LEVEL", "--sim[=SCENARIO]". */
void ll_help_signature(const struct ll_option *option, struct ll_strbuf *out);

/* The option's help with the words it takes and its default. */
void ll_help_option(const struct ll_option *option, struct ll_strbuf *out);

extern const char ll_help_about[];

/* An exit status and its meaning. */
struct ll_help_status {
	int status;
	const char *meaning;
};

/* The exit statuses of the program and of commands without their own; ended by a NULL meaning. */
extern const struct ll_help_status ll_help_statuses[];

#endif
