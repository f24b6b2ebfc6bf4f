/*
 * help_text.h - the output of --help, made from the option tables.
 */
#ifndef LOADLINE_CLI_OPTIONS_HELP_TEXT_H
#define LOADLINE_CLI_OPTIONS_HELP_TEXT_H

#include <stddef.h>

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

/*
 * Manual pages in roff, made from the same tables as --help.
 */

/* Adds the page loadline(1). */
void ll_man_program(struct ll_strbuf *out);

/* Adds the page loadline-COMMAND(1). */
void ll_man_command(const struct ll_command *command, struct ll_strbuf *out);

/* Adds the page loadline.yaml(5), from the table of its keys (config/keys.h). */
void ll_man_config(struct ll_strbuf *out);

/*
 * Completion scripts for shells, made from the option tables.
 */

/* A command line without the program's name, for any shell. It prints the claims and tenants that have limits, one a
 * line. It leaves out names that a shell would have to quote. */
#define LL_COMPLETION_CLAIMS                                                                                           \
	"status --json 2>/dev/null | sed '/\"synthetic\":true/d' | tr ',{' '\\n\\n' | "                                \
	"sed -n 's/^\"\\(claim\\|tenant\\)\":\"\\([A-Za-z0-9._/-]*\\)\"$/\\2/p' | sort -u"

/* Each appends the script for its shell. The scripts are installed as completions/loadline, site-functions/_loadline
 * and loadline.fish. */
void ll_completion_bash(struct ll_strbuf *out);
void ll_completion_zsh(struct ll_strbuf *out);
void ll_completion_fish(struct ll_strbuf *out);

/*
 * Breaks running text into lines.
 *
 * A text consists of paragraphs with an empty line between ("\n\n"). A paragraph that begins with a blank keeps its
 * lines, for tables and command lines. Any other paragraph is filled up to the width. A line may also end between two
 * wide characters, as Chinese is written without blanks, but not before a mark such as a full stop.
 */

enum { LL_WRAP_WIDTH = 79 };

/*
 * Appends text, broken at LL_WRAP_WIDTH, and a newline. The first line starts at column. Every further line, and each
 * line of a kept paragraph, begins with indent blanks.
 */
void ll_wrap(struct ll_strbuf *out, const char *text, size_t column, size_t indent);

/* Returns the length of the paragraph at text. *ret_next: the start of the next paragraph, or the NUL at the end. */
size_t ll_wrap_paragraph(const char *text, const char **ret_next);

/* Returns the length of the first sentence without its full stop. Completion menus show that sentence. */
size_t ll_wrap_first_sentence(const char *text);

#endif
