#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/status/status.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "ledger/proc.h"
#include "ledger/turn.h"

/* ---- readings ---- */

static void read_card(struct ll_status_card *status)
{
	const struct ll_card *card = status->card;
	struct ll_power power;
	struct ll_temperature temperature;
	uint64_t energy_mj;
	if (!ll_read_power(card, &power, NULL))
		status->power_watts = power.watts;
	if (!ll_read_energy(card, &energy_mj, NULL))
		status->energy_joules = (double)energy_mj / 1000;
	if (!ll_read_temperature(card, &temperature, NULL)) {
		status->celsius = temperature.celsius;
		status->slowdown_celsius = temperature.slowdown_celsius;
	}
	ll_read_util(card, &status->util_percent, NULL);
	ll_read_power_limit(card, &status->power_limit_watts, NULL);
	status->has_memory = !ll_read_memory(card, &status->memory, NULL);
	status->has_clocks = !ll_read_clocks(card, &status->clocks, NULL);
	status->has_slowdown = !ll_read_slowdown(card, &status->slowdown, NULL);
	status->has_mode = !ll_read_compute_mode(card, &status->mode, NULL);
	status->has_processes = !ll_read_processes(card, LL_PROCESS_ALL, &status->processes, NULL);
}

int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, struct ll_err *err)
{
	const double unknown = (double)NAN;
	*status = (struct ll_status_card){
	    .card = card,
	    .is_simulated = ll_driver_sim_folder(card->driver) != NULL,
	    .util_percent = unknown,
	    .power_watts = unknown,
	    .power_limit_watts = unknown,
	    .energy_joules = unknown,
	    .celsius = unknown,
	    .slowdown_celsius = unknown,
	    .now_ns = ll_now_ns(),
	};
	if (card->fault)
		return 0;
	read_card(status);
	int rc = ll_status_read_ledger(status, err);
	if (!rc && !card->has_slices)
		ll_status_find_strangers(status);
	return rc;
}

void ll_status_card_fini(struct ll_status_card *status)
{
	free(status->claims);
	free(status->tenants);
	free(status->strangers);
	ll_process_list_fini(&status->processes);
	status->claims = NULL;
	status->tenants = NULL;
	status->strangers = NULL;
	status->claim_count = status->tenant_count = status->stranger_count = 0;
}

/* ---- the ledger ---- */

enum { CLAIMS_MAX = 256, TENANTS_MAX = 128 };

const struct ll_tenant_info *ll_status_tenant(const struct ll_status_card *status, const struct ll_claim_info *claim)
{
	for (size_t i = 0; claim->tenant_row && i < status->tenant_count; i++) {
		if (status->tenants[i].row + 1 == claim->tenant_row)
			return &status->tenants[i];
	}
	return NULL;
}

/* The ledger's word for the turn may name a claim that has ended or has no work. */
bool ll_status_waits(const struct ll_status_card *status, const struct ll_claim_info *claim, unsigned *ret_holder)
{
	const struct ll_tenant_info *tenant = ll_status_tenant(status, claim);
	if (claim->checkpoint || !claim->want_since_ns || !status->has_holder || status->holder == claim->index ||
	    !tenant || !tenant->is_held)
		return false;
	for (size_t i = 0; i < status->claim_count; i++) {
		const struct ll_claim_info *holder = &status->claims[i];
		if (holder->index == status->holder && holder->want_since_ns) {
			*ret_holder = holder->index;
			return true;
		}
	}
	return false;
}

bool ll_status_is_over_cap(const struct ll_status_card *status, const struct ll_claim_info *claim)
{
	const struct ll_tenant_info *tenant = ll_status_tenant(status, claim);
	return !claim->checkpoint && tenant && tenant->compute_cap_permille && tenant->tokens_ns < 0;
}

bool ll_status_has_turn(const struct ll_status_card *status, const struct ll_claim_info *claim)
{
	return !claim->checkpoint && status->has_holder && status->holder == claim->index;
}

bool ll_status_lost(const struct ll_status_card *status, const struct ll_tenant_info *tenant, double *ret_seconds)
{
	uint64_t since_ns = tenant->lost_since_ns;
	*ret_seconds = status->now_ns > since_ns ? (double)(status->now_ns - since_ns) / (double)LL_NS_PER_S : 0;
	return since_ns;
}

bool ll_status_residency(const struct ll_claim_info *claim, struct ll_status_residency *ret_residency)
{
	uint64_t used_bytes = claim->memory_used_bytes;
	if (claim->residency == LL_CLAIM_FIXED)
		return false;
	*ret_residency = (struct ll_status_residency){
	    .resident_bytes = used_bytes > claim->away_bytes ? used_bytes - claim->away_bytes : 0,
	    .evictable_bytes = claim->evictable_bytes,
	    .pinned_bytes = used_bytes > claim->evictable_bytes ? used_bytes - claim->evictable_bytes : 0,
	};
	return true;
}

const char *ll_status_state(const struct ll_claim_info *claim)
{
	if (claim->checkpoint == LL_CHECKPOINT_EVICTED)
		return "evicted (checkpoint)";
	if (claim->checkpoint == LL_CHECKPOINT_SUSPENDED)
		return "suspended";
	if (claim->residency == LL_CLAIM_EVICTED)
		return "evicted";
	if (claim->residency == LL_CLAIM_STOPPED)
		return "stopped";
	return ll_claim_state_name(claim->priority, claim->state);
}

static void fill_recent(const struct ll_status_card *status, uint64_t before_ns, uint64_t now_ns,
			struct ll_status_recent *ret_recent)
{
	uint64_t passed_ns = status->now_ns - status->earlier->now_ns;
	uint64_t had_ns = now_ns > before_ns ? now_ns - before_ns : 0;
	ret_recent->seconds = (double)passed_ns / (double)LL_NS_PER_S;
	ret_recent->percent = 100 * (double)had_ns / (double)passed_ns;
}

bool ll_status_recent_tenant(const struct ll_status_card *status, const struct ll_tenant_info *tenant,
			     struct ll_status_recent *ret_recent)
{
	const struct ll_status_card *earlier = status->earlier;
	for (size_t i = 0; earlier && status->now_ns > earlier->now_ns && i < earlier->tenant_count; i++) {
		if (earlier->tenants[i].id != tenant->id)
			continue;
		fill_recent(status, earlier->tenants[i].gpu_time_ns, tenant->gpu_time_ns, ret_recent);
		return true;
	}
	return false;
}

bool ll_status_recent_hold(const struct ll_status_card *status, const struct ll_claim_info *hold,
			   struct ll_status_recent *ret_recent)
{
	const struct ll_status_card *earlier = status->earlier;
	for (size_t i = 0; earlier && status->now_ns > earlier->now_ns && i < earlier->claim_count; i++) {
		const struct ll_claim_info *before = &earlier->claims[i];
		if (before->index != hold->index || before->taken_ns != hold->taken_ns)
			continue;
		fill_recent(status, before->synthetic_busy_ns, hold->synthetic_busy_ns, ret_recent);
		return true;
	}
	return false;
}

/* The limits in force are in the tenant's row. The claim has the limits with which it started. */
static void apply_tenant(struct ll_claim_info *claim, const struct ll_tenant_info *tenant)
{
	claim->priority = tenant->priority;
	claim->memory_limit_bytes = tenant->memory_limit_bytes;
	claim->compute_cap_permille = tenant->compute_cap_permille;
	claim->weight_permille = tenant->weight_permille;
}

static int copy_ledger(struct ll_status_card *status, struct ll_ledger *ledger, struct ll_err *err)
{
	status->claims = calloc(CLAIMS_MAX, sizeof *status->claims);
	status->tenants = calloc(TENANTS_MAX, sizeof *status->tenants);
	if (!status->claims || !status->tenants)
		return ll_err_set(err, -ENOMEM, "claims: %s", strerror(ENOMEM));
	ll_ledger_sweep_below(ledger);
	status->claim_count = ll_ledger_list(ledger, status->claims, CLAIMS_MAX);
	status->tenant_count = ll_tenant_list(ledger, status->tenants, TENANTS_MAX);
	status->has_holder = ll_turn_holder(ledger, &status->holder);
	for (size_t i = 0; i < status->claim_count; i++) {
		const struct ll_tenant_info *tenant = ll_status_tenant(status, &status->claims[i]);
		if (tenant)
			apply_tenant(&status->claims[i], tenant);
	}
	return 0;
}

/* A card without any claim so far has no ledger. */
int ll_status_read_ledger(struct ll_status_card *status, struct ll_err *err)
{
	char folder[LL_FOLDER_SIZE];
	struct ll_ledger *ledger = NULL;
	struct ll_err own = {0};
	int rc = ll_ledger_folder(ll_driver_sim_folder(status->card->driver), folder, &own);
	if (!rc)
		rc = ll_ledger_open(folder, status->card->uuid, false, &ledger, &own);
	if (rc == -ENOENT)
		return 0;
	if (!rc)
		rc = copy_ledger(status, ledger, &own);
	ll_ledger_close(ledger);
	if (rc && err)
		*err = own;
	return rc;
}
