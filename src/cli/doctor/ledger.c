#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "cli/doctor/doctor.h"
#include "cli/run/start.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "ledger/proc.h"
#include "ledger/tenant.h"

enum { CLAIMS_MAX = 256, TENANTS_MAX = 128, SILENT_S = 10 };

static const char check[] = "claims";

static void say_silent(struct ll_doctor *doctor, const struct ll_card *card, const struct ll_claim_info *claim,
		       uint64_t now_ns)
{
	uint64_t silent_s = now_ns > claim->heartbeat_ns ? (now_ns - claim->heartbeat_ns) / LL_NS_PER_S : 0;
	if (claim->priority == LL_PRIORITY_HOLD && silent_s >= SILENT_S)
		ll_doctor_say(doctor, LL_FINDING_WARN, card, check,
			      "if it is stopped or hangs, end it (kill -9 is safe)",
			      "the hold of pid %d has not renewed its claim for %llu s", (int)claim->pid,
			      (unsigned long long)silent_s);
}

static size_t check_claims(struct ll_doctor *doctor, const struct ll_card *card, struct ll_ledger *ledger)
{
	LL_SCOPE_FREE struct ll_claim_info *claims = calloc(CLAIMS_MAX, sizeof *claims);
	size_t dead = ll_ledger_sweep_below(ledger);
	size_t count = claims ? ll_ledger_list(ledger, claims, CLAIMS_MAX) : 0;
	size_t holds = 0;
	for (size_t i = 0; i < count; i++) {
		holds += claims[i].priority == LL_PRIORITY_HOLD;
		say_silent(doctor, card, &claims[i], ll_now_ns());
	}
	ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL,
		      "%zu live (%zu synthetic), cleared %zu of dead processes", count, holds, dead);
	return count;
}

/* Reports tenants of which a process has lost its claim and gets no other. */
static void check_tenants(struct ll_doctor *doctor, const struct ll_card *card, struct ll_ledger *ledger)
{
	LL_SCOPE_FREE struct ll_tenant_info *tenants = calloc(TENANTS_MAX, sizeof *tenants);
	size_t count = tenants ? ll_tenant_list(ledger, tenants, TENANTS_MAX) : 0;
	uint64_t now_ns = ll_now_ns();
	for (size_t i = 0; i < count; i++) {
		uint64_t since_ns = tenants[i].lost_since_ns;
		if (!since_ns)
			continue;
		doctor->limit_fails++;
		ll_doctor_say(doctor, LL_FINDING_FAIL, card, check,
			      "its standard error says why; if all claims of the card are taken, end a program that "
			      "has one (`loadline status` lists them); otherwise restart the program",
			      "tenant %s has not been held to its limits for %llu s: a process has lost its claim",
			      tenants[i].name,
			      (unsigned long long)(now_ns > since_ns ? (now_ns - since_ns) / LL_NS_PER_S : 0));
	}
}

/* Opens the ledger as `run` does, which replaces a ledger of another version that no process uses. */
static int open_ledger(const struct ll_card *card, const char *folder, struct ll_ledger **ret_ledger,
		       struct ll_err *err)
{
	int rc = ll_ledger_open(folder, card->uuid, false, ret_ledger, err);
	return rc == -EPROTO ? ll_ledger_open(folder, card->uuid, true, ret_ledger, err) : rc;
}

/* Checks whether the ledger has room for one more tenant and one more claim. A hold needs a claim too. */
static void check_room(struct ll_doctor *doctor, const struct ll_card *card, const char *folder, size_t claim_count)
{
	struct ll_run_settings settings = {
	    .id = (uint64_t)getpid(), .tenant = "doctor", .priority = LL_PRIORITY_NORMAL};
	struct ll_err err = {0};
	LL_SCOPE_CLOSE int fd = -1;
	snprintf(settings.folder, sizeof settings.folder, "%s", folder);
	if (ll_run_join(&settings, card, 0, &fd, &err) == 0)
		return;
	doctor->refusing = card;
	doctor->limit_fails += claim_count < CLAIMS_MAX;
	ll_doctor_say_err(doctor, LL_FINDING_FAIL, card, check, &err);
}

void ll_doctor_check_ledger(struct ll_doctor *doctor, const struct ll_card *card)
{
	char folder[LL_FOLDER_SIZE];
	struct ll_ledger *ledger = NULL;
	struct ll_err err = {0};
	int rc = ll_ledger_folder(ll_driver_sim_folder(card->driver), folder, &err);
	if (!rc)
		rc = open_ledger(card, folder, &ledger, &err);
	if (rc == -ENOENT) {
		ll_doctor_say(doctor, LL_FINDING_OK, card, check, NULL, "none yet");
	} else if (rc) {
		doctor->refusing = card;
		ll_doctor_say_err(doctor, LL_FINDING_FAIL, card, check, &err);
	} else {
		size_t count = check_claims(doctor, card, ledger);
		check_tenants(doctor, card, ledger);
		check_room(doctor, card, folder, count);
	}
	ll_ledger_close(ledger);
}
