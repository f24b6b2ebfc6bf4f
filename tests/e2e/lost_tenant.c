/*
 * lost_tenant.c - a tenant with one claim, of which another process has lost its claim: lost_tenant FOLDER UUID. It
 * says "ready", and goes on until it is killed.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "ledger/claim.h"
#include "ledger/tenant.h"

enum { TENANT = 71 };

static int fail(const struct ll_err *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct ll_err err = {0};
	struct ll_ledger *ledger;
	struct ll_claim *claim;
	struct ll_tenant_wish tenant = {.id = TENANT, .name = "stray", .priority = LL_PRIORITY_NORMAL};
	struct ll_claim_wish wish = {.tenant = "stray", .priority = LL_PRIORITY_NORMAL};
	unsigned row;
	if (argc != 3)
		return 2;
	if (ll_ledger_open(argv[1], argv[2], true, &ledger, &err) || ll_tenant_join(ledger, &tenant, &row, &err))
		return fail(&err);
	wish.tenant_row = row + 1;
	if (ll_claim_take(ledger, &wish, "0", &claim, &err))
		return fail(&err);
	for (bool is_ready = false;; is_ready = true) {
		uint64_t now_ns = ll_now_ns();
		ll_tenant_note_lost(ledger, TENANT, now_ns);
		if (!is_ready)
			puts("ready");
		fflush(stdout);
		ll_sleep_until_ns(now_ns + LL_NS_PER_S / 5);
	}
}
