/*
 * join.h - a tenant's place in the ledger of a card.
 */
#ifndef LOADLINE_CLI_RUN_JOIN_H
#define LOADLINE_CLI_RUN_JOIN_H

#include "driver/cards.h"
#include "ledger/run_settings.h"

/*
 * Takes it, making the ledger where there is none, and sees that there is room for the claim of a program. *ret_fd
 * keeps the tenant: whoever inherits it, over exec too, keeps it on. Errors as ll_ledger_open and
 * ll_run_settings_claim.
 */
int ll_run_join(const struct ll_run_settings *settings, const struct ll_card *card, int *ret_fd, struct ll_err *err);

#endif
