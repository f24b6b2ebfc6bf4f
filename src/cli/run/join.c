#include "cli/run/join.h"

#include <stddef.h>

#include "ledger/claim.h"
#include "ledger/ledger.h"
#include "ledger/proc.h"

int ll_run_join(const struct ll_run_settings *settings, const struct ll_card *card, int *ret_fd, struct ll_err *err)
{
	struct ll_ledger *ledger;
	struct ll_claim *claim = NULL;
	unsigned row = 0;
	int rc = ll_ledger_open(settings->folder, card->uuid, true, &ledger, err);
	if (rc)
		return rc;
	ll_ledger_sweep_below(ledger);
	/* Whether there is room for the claim that the command will take: without one it would not be governed. */
	rc = ll_run_settings_claim(settings, ledger, card->label, &row, &claim, err);
	ll_claim_release(claim);
	if (!rc)
		rc = ll_tenant_keep(ledger, row, ret_fd, err);
	ll_ledger_close(ledger);
	return rc;
}
