/*
 * start.h - from options to the governed command: what `run` and `mps run` do.
 */
#ifndef LOADLINE_CLI_RUN_START_H
#define LOADLINE_CLI_RUN_START_H

#include "cli/options/help_text.h"
#include "cli/options/option.h"
#include "cli/run/args.h"

struct ll_err;
struct ll_run_settings;

enum { LL_RUN_OWN_FAILURE = 125 };

/* The exit statuses of both commands. */
extern const struct ll_help_status ll_run_statuses[];

/* Becomes the command that the operands name. Returns only if it cannot. */
int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err);

/*
 * Joins the tenant's place in the ledger of the card, and makes the ledger if there is none. Checks that there is room
 * for the claim of a program. *ret_fd keeps the tenant: it exists while a process that has inherited the descriptor
 * lives, over exec too. Errors are those of ll_ledger_open and ll_run_settings_claim.
 */
int ll_run_join(const struct ll_run_settings *settings, const struct ll_card *card, int *ret_fd, struct ll_err *err);

#endif
