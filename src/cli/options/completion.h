/*
 * completion.h - completion scripts for shells, made from the option tables.
 */
#ifndef LOADLINE_CLI_OPTIONS_COMPLETION_H
#define LOADLINE_CLI_OPTIONS_COMPLETION_H

struct ll_strbuf;

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

#endif
