/*
 * man.h - manual pages in roff, made from the same tables as --help.
 */
#ifndef LOADLINE_CLI_OPTIONS_MAN_H
#define LOADLINE_CLI_OPTIONS_MAN_H

struct ll_command;
struct ll_strbuf;

/* Adds the page loadline(1). */
void ll_man_program(struct ll_strbuf *out);

/* Adds the page loadline-COMMAND(1). */
void ll_man_command(const struct ll_command *command, struct ll_strbuf *out);

/* Adds the page loadline.yaml(5), from the table of its keys (config/keys.h). */
void ll_man_config(struct ll_strbuf *out);

#endif
