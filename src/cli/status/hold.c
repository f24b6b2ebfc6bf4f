/* The synthetic load of a card, as it says itself. */
#include <stdio.h>

#include "base/translate.h"
#include "cli/hold/words.h"
#include "cli/status/status.h"

static void fill_hold(const struct ll_status_card *status, const struct ll_hold_owner *owner,
		      struct ll_status_claim *ret_claim)
{
	const struct ll_hold_report *report = &owner->report;
	*ret_claim = (struct ll_status_claim){
	    .pid = owner->pid,
	    .is_pid_ours = owner->pid > 0,
	    .priority = LL_PRIORITY_HOLD,
	    .state = (enum ll_claim_state)report->state,
	    .weight_permille = LL_DEFAULT_WEIGHT_PERMILLE,
	    .memory_used_bytes = report->memory_bytes,
	    .target_permille = report->target_permille,
	    .target_watts = report->target_watts,
	    .gpu_time_ns = report->gpu_time_ns,
	    .synthetic_busy_ns = report->synthetic_busy_ns,
	    .energy_mj = report->energy_mj,
	    .yields = report->yields,
	    .idle_ns = UINT64_MAX,
	    .taken_ns = status->now_ns > report->taken_age_ns ? status->now_ns - report->taken_age_ns : 1,
	};
	snprintf(ret_claim->tenant, sizeof ret_claim->tenant, "%s", LL_HOLD_TENANT);
	snprintf(ret_claim->payload, sizeof ret_claim->payload, "%s", report->payload);
	snprintf(ret_claim->metric, sizeof ret_claim->metric, "%s", report->metric);
	snprintf(ret_claim->note, sizeof ret_claim->note, "%s",
		 owner->has_report ? report->note : N_("does not answer"));
}

void ll_status_read_hold(struct ll_status_card *status)
{
	struct ll_hold_owner owner;
	const char *sim_folder = ll_driver_sim_folder(status->card->driver);
	if (ll_hold_query(status->card, sim_folder, &owner, &status->sitter, NULL) == 0)
		fill_hold(status, &owner, &status->claims[status->claim_count++]);
}

void ll_status_add_sitter(struct ll_strbuf *text, const struct ll_status_card *status)
{
	if (status->sitter.kind == LL_HOLD_NO_SITTER)
		return;
	ll_hold_add_sitter(text, status->card, &status->sitter);
	ll_strbuf_addc(text, '\n');
}
