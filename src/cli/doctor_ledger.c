#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/scope.h"
#include "cli/doctor.h"
#include "ledger/folder.h"
#include "ledger/ledger.h"

enum { CLAIMS_MAX = 256, SILENT_S = 10 };

static const char check[] = "claims";

static void say_silent(struct ll_doctor *doctor, const struct ll_card *card, const struct ll_claim_info *claim,
		       uint64_t now_ns)
{
	uint64_t silent_s = now_ns > claim->heartbeat_ns ? (now_ns - claim->heartbeat_ns) / LL_NS_PER_S : 0;
	if (claim->priority == LL_PRIORITY_HOLD && silent_s >= SILENT_S)
		ll_doctor_say(
		    doctor, LL_FINDING_WARN, card, check, "if it is stopped or hangs, end it (kill -9 is safe)",
		    "the hold of pid %d has not stirred for %llu s", (int)claim->pid, (unsigned long long)silent_s);
}

static void check_claims(struct ll_doctor *doctor, const struct ll_card *card, struct ll_ledger *ledger)
{
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS_MAX, sizeof *claims);
	size_t dead = ll_ledger_sweep(ledger);
	size_t count = claims ? ll_ledger_list(ledger, claims, CLAIMS_MAX) : 0;
	size_t holds = 0;
	for (size_t i = 0; i < count; i++) {
		holds += claims[i].priority == LL_PRIORITY_HOLD;
		say_silent(doctor, card, &claims[i], ll_now_ns());
	}
	ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL,
		      "%zu live (%zu synthetic), %zu of dead processes cleared", count, holds, dead);
}

void ll_doctor_check_ledger(struct ll_doctor *doctor, const struct ll_card *card)
{
	char folder[LL_FOLDER_SIZE];
	struct ll_ledger *ledger = NULL;
	struct ll_err err = {0};
	int rc = ll_ledger_folder(ll_driver_sim_folder(card->driver), folder, &err);
	if (!rc)
		rc = ll_ledger_open(folder, card->uuid, false, &ledger, &err);
	if (rc == -ENOENT)
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "none yet");
	else if (rc)
		ll_doctor_say_err(doctor, LL_FINDING_FAIL, card, check, &err);
	else
		check_claims(doctor, card, ledger);
	ll_ledger_close(ledger);
}
