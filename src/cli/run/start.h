/*
 * start.h - starts the governed command, for `run` and `mps run`.
 */
#ifndef LOADLINE_CLI_RUN_START_H
#define LOADLINE_CLI_RUN_START_H

#include "cli/options/help_text.h"
#include "cli/options/option.h"
#include "cli/run/args.h"

struct ll_err;

enum { LL_RUN_OWN_FAILURE = 125 };

/* The exit statuses of both commands. */
extern const struct ll_help_status ll_run_statuses[];

/* Executes the command that the operands name, in this process. It returns on failure only. */
int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err);

#endif
