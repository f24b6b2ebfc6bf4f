/*
 * start.h - starts the governed command, for `run` and `mps run`.
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

/* Executes the command that the operands name, in this process. It returns on failure only. */
int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err);

/*
 * Takes or joins the tenant's row in the ledger of the card, and makes the ledger if there is none. Checks that the
 * ledger has room for the program's claim, and, for a new tenant, that the requests of all are no more than
 * promisable_bytes (0: they may be): else -EDQUOT. *ret_fd keeps the tenant: the tenant exists while a process that has
 * inherited the descriptor lives, also after exec. Errors are those of ll_ledger_open and ll_run_settings_claim.
 */
int ll_run_join(const struct ll_run_settings *settings, const struct ll_card *card, uint64_t promisable_bytes,
		int *ret_fd, struct ll_err *err);

#endif
