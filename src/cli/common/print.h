/*
 * print.h - prints a text on standard output, and says why it could not.
 */
#ifndef LOADLINE_CLI_COMMON_PRINT_H
#define LOADLINE_CLI_COMMON_PRINT_H

struct ll_err;
struct ll_strbuf;

/* Prints the text, with what standard output has buffered before, and flushes it. -ENOMEM if the text could not be
 * made; -EIO, with exit status 1, if it cannot be written. */
int ll_print_text(const struct ll_strbuf *text, struct ll_err *err);

#endif
