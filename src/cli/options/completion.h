/*
 * completion.h - what the shells complete, made from the option tables.
 */
#ifndef LOADLINE_CLI_OPTIONS_COMPLETION_H
#define LOADLINE_CLI_OPTIONS_COMPLETION_H

struct ll_strbuf;

/* Words behind the program's name, as every shell reads them: the claims and tenants with limits, one a line. Names
 * that a shell would have to quote are left out. */
#define LL_COMPLETION_CLAIMS                                                                                           \
	"status --json 2>/dev/null | sed '/\"synthetic\":true/d' | tr ',{' '\\n\\n' | "                                \
	"sed -n 's/^\"\\(claim\\|tenant\\)\":\"\\([A-Za-z0-9._/-]*\\)\"$/\\2/p' | sort -u"

/* Each appends a script that its shell loads: completions/loadline, site-functions/_loadline, loadline.fish. */
void ll_completion_bash(struct ll_strbuf *out);
void ll_completion_zsh(struct ll_strbuf *out);
void ll_completion_fish(struct ll_strbuf *out);

#endif
