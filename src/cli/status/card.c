#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/translate.h"
#include "cli/status/status.h"

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

int ll_status_card_init(struct ll_status_card *status, const struct ll_card *card, const struct ll_daemon_view *view,
			struct ll_err *err)
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
	ll_status_card_drained(status, view);
	if (card->fault && !ll_status_card_by_sensor(status, view))
		return 0;
	if (!card->fault) {
		read_card(status);
		ll_status_read_idle(status);
	}
	int rc = ll_status_read_claims(status, view, err);
	/* Without an answer there is no telling who is governed. */
	bool is_known = view->answer != LL_DAEMON_SILENT && view->answer != LL_DAEMON_BROKEN;
	if (!rc && is_known && !card->has_slices)
		ll_status_find_strangers(status);
	if (view->list.end.hides_others)
		ll_status_hide_others(status);
	ll_status_take_sensed(status, view);
	ll_status_know_processes(status);
	return rc;
}

void ll_status_card_fini(struct ll_status_card *status)
{
	free(status->claims);
	free(status->jobs);
	free(status->strangers);
	free(status->known);
	free(status->earlier_runs);
	ll_process_list_fini(&status->processes);
	status->claims = NULL;
	status->jobs = NULL;
	status->earlier_runs = NULL;
	status->strangers = NULL;
	status->known = NULL;
	status->claim_count = status->job_count = status->stranger_count = status->known_count = 0;
}

/* ---- what the words of a claim mean ---- */

const struct ll_status_job *ll_status_job_of(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	for (size_t i = 0; claim->job_number && i < status->job_count; i++) {
		if (status->jobs[i].number == claim->job_number)
			return &status->jobs[i];
	}
	return NULL;
}

const char *ll_status_number(const struct ll_status_card *status, const struct ll_status_claim *claim,
			     char ret_number[LL_STATUS_NUMBER_SIZE])
{
	if (claim->priority == LL_PRIORITY_HOLD)
		snprintf(ret_number, LL_STATUS_NUMBER_SIZE, "%s/hold", status->card->label);
	else
		snprintf(ret_number, LL_STATUS_NUMBER_SIZE, "%s/%u", status->card->label, claim->index);
	return ret_number;
}

const struct ll_status_claim *ll_status_waits_for(const struct ll_status_card *status,
						  const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	if (claim->checkpoint || !claim->is_wanting || !job || !job->is_held)
		return NULL;
	for (size_t i = 0; i < status->claim_count; i++) {
		const struct ll_status_job *other = ll_status_job_of(status, &status->claims[i]);
		if (other && other->is_holder && status->claims[i].is_wanting)
			return &status->claims[i];
	}
	return NULL;
}

bool ll_status_is_over_cap(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	return !claim->checkpoint && job && job->compute_cap_permille && job->tokens_ns < 0;
}

bool ll_status_has_turn(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	return !claim->checkpoint && job && job->is_holder;
}

bool ll_status_lost(const struct ll_status_card *status, const struct ll_status_job *job, double *ret_seconds)
{
	uint64_t since_ns = job->lost_since_ns;
	*ret_seconds = status->now_ns > since_ns ? (double)(status->now_ns - since_ns) / (double)LL_NS_PER_S : 0;
	return since_ns;
}

bool ll_status_residency_of(const struct ll_status_claim *claim, struct ll_status_residency *ret_residency)
{
	uint64_t used_bytes = claim->memory_used_bytes;
	if (claim->residency == LL_CLAIM_FIXED)
		return false;
	*ret_residency = (struct ll_status_residency){
	    .resident_bytes = used_bytes > claim->away_bytes ? used_bytes - claim->away_bytes : 0,
	    .evictable_bytes = claim->evictable_bytes,
	    .pinned_bytes = used_bytes > claim->evictable_bytes ? used_bytes - claim->evictable_bytes : 0,
	    .host_bytes = claim->host_bytes,
	    .neighbour_bytes = claim->neighbour_bytes,
	    .moves = claim->moves,
	};
	return true;
}

const char *ll_status_state(const struct ll_status_claim *claim)
{
	if (claim->checkpoint == LL_CHECKPOINT_EVICTED)
		return N_("evicted (checkpoint)");
	if (claim->checkpoint == LL_CHECKPOINT_SUSPENDED)
		return N_("suspended");
	if (claim->residency == LL_CLAIM_EVICTED)
		return N_("evicted");
	if (claim->residency == LL_CLAIM_STOPPED || claim->is_stopped)
		return N_("stopped");
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

bool ll_status_recent_job(const struct ll_status_card *status, const struct ll_status_job *job,
			  struct ll_status_recent *ret_recent)
{
	const struct ll_status_card *earlier = status->earlier;
	for (size_t i = 0; earlier && status->now_ns > earlier->now_ns && i < earlier->job_count; i++) {
		if (earlier->jobs[i].id != job->id)
			continue;
		fill_recent(status, earlier->jobs[i].gpu_time_ns, job->gpu_time_ns, ret_recent);
		return true;
	}
	return false;
}

bool ll_status_recent_hold(const struct ll_status_card *status, const struct ll_status_claim *hold,
			   struct ll_status_recent *ret_recent)
{
	const struct ll_status_card *earlier = status->earlier;
	for (size_t i = 0; earlier && status->now_ns > earlier->now_ns && i < earlier->claim_count; i++) {
		const struct ll_status_claim *before = &earlier->claims[i];
		if (before->priority != LL_PRIORITY_HOLD || before->pid != hold->pid)
			continue;
		fill_recent(status, before->synthetic_busy_ns, hold->synthetic_busy_ns, ret_recent);
		return true;
	}
	return false;
}
