/*
 * completion.h - what the shells complete, made from the option tables.
 */
#ifndef LOADLINE_CLI_COMPLETION_H
#define LOADLINE_CLI_COMPLETION_H

struct ll_strbuf;

/* Each appends a script that its shell loads: completions/loadline, site-functions/_loadline, loadline.fish. */
void ll_completion_bash(struct ll_strbuf *out);
void ll_completion_zsh(struct ll_strbuf *out);
void ll_completion_fish(struct ll_strbuf *out);

#endif
