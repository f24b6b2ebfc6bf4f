/*
 * start.h - from options to the governed command: what `run` and `mps run` do.
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

/* Becomes the command that the operands name. Returns only when it cannot. */
int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err);

#endif
