/* What loadlined knows of the claims and jobs of a card, and what its synthetic load says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/status/status.h"

static uint64_t time_of_age(const struct ll_status_card *status, uint64_t age_ns)
{
	return status->now_ns > age_ns ? status->now_ns - age_ns : 1;
}

static unsigned slowdown_of(const struct ll_limits *limits)
{
	return limits->slowdown_permille ? limits->slowdown_permille : LL_DEFAULT_SLOWDOWN_PERMILLE;
}

static void fill_claim(const struct ll_status_card *status, const struct ll_daemon_view *view,
		       const struct ll_message_claim_row *row, struct ll_status_claim *ret_claim)
{
	const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
	*ret_claim = (struct ll_status_claim){
	    .index = row->index,
	    .pid = (pid_t)row->pid,
	    .is_pid_ours = row->pid && ll_daemon_view_pids_are_ours(view),
	    .priority = LL_PRIORITY_NORMAL,
	    .state = (enum ll_claim_state)row->state,
	    .taken_ns = time_of_age(status, row->taken_age_ns),
	    .memory_used_bytes = row->used_bytes,
	    .granted_bytes = row->granted_bytes,
	    .residency = (enum ll_claim_residency)row->residency,
	    .checkpoint = (enum ll_claim_checkpoint)row->checkpoint,
	    .evictable_bytes = row->evictable_bytes,
	    .away_bytes = row->away_bytes,
	    .host_bytes = row->host_bytes,
	    .neighbour_bytes = row->neighbour_bytes,
	    .moves = row->moves,
	    .is_wanting = row->wanting_ns,
	    .idle_ns = row->idle_ns,
	    .gpu_time_ns = row->gpu_time_ns,
	    .accounts = row->accounts,
	    .job_number = row->job_number,
	};
	snprintf(ret_claim->note, sizeof ret_claim->note, "%s", row->note);
	snprintf(ret_claim->neighbour, sizeof ret_claim->neighbour, "%s", row->neighbour);
	if (!job)
		return;
	const struct ll_limits *limits = &job->job.limits;
	if (row->pid && row->pid == job->job.pid)
		snprintf(ret_claim->told_command, sizeof ret_claim->told_command, "%s", job->job.command);
	ret_claim->is_command_hidden = !job->job.command[0];
	snprintf(ret_claim->tenant, sizeof ret_claim->tenant, "%s", job->job.tenant);
	snprintf(ret_claim->configured_tenant, sizeof ret_claim->configured_tenant, "%s", job->tenant);
	snprintf(ret_claim->project, sizeof ret_claim->project, "%s", job->project);
	ret_claim->has_group = job->job.flags & LL_JOB_HAS_GROUP;
	ret_claim->priority = ll_priority_of_class(limits->priority);
	ret_claim->memory_limit_bytes = limits->memory_bytes;
	ret_claim->memory_request_bytes = limits->request_bytes;
	ret_claim->compute_cap_permille = limits->compute_permille;
	ret_claim->weight_permille = limits->weight_permille ? limits->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE;
	ret_claim->slowdown_permille = slowdown_of(limits);
}

static void fill_how(const struct ll_message_card_row *row, struct ll_status_how *ret_how)
{
	*ret_how = (struct ll_status_how){
	    .shared = (enum ll_shared)row->shared,
	    .sharing = (enum ll_sharing)row->sharing,
	    .is_capped = row->flags & LL_CARD_IS_CAPPED,
	    .is_beneath = row->flags & LL_CARD_IS_BENEATH,
	    .is_held = row->flags & LL_CARD_IS_HELD,
	    .is_forced = row->flags & LL_CARD_IS_FORCED,
	    .share_permille = row->recent_permille,
	    .share_ns = row->recent_ns,
	    .slices_permille = row->slices_speed_permille,
	    .visits_permille = row->visits_speed_permille,
	    .measured_wall_ns = row->measured_age_ns ? ll_wall_ns() - row->measured_age_ns : 0,
	};
}

static void fill_job(const struct ll_status_card *status, const struct ll_daemon_view *view,
		     const struct ll_message_card_row *row, struct ll_status_job *ret_job)
{
	const struct ll_message_job_row *job = ll_list_job(&view->list, row->job_number);
	*ret_job = (struct ll_status_job){
	    .number = row->job_number,
	    .priority = LL_PRIORITY_NORMAL,
	    .memory_used_bytes = row->used_bytes,
	    .leaving_bytes = row->leaving_bytes,
	    .gpu_time_ns = row->gpu_time_ns,
	    .accounts = row->accounts,
	    .tokens_ns = row->tokens_ns,
	    .lost_since_ns = row->flags & LL_CARD_IS_LOST ? time_of_age(status, row->lost_ns) : 0,
	    .is_held = row->flags & LL_CARD_IS_HELD,
	    .is_holder = row->flags & LL_CARD_IS_HOLDER,
	    .held_permille = row->held_permille,
	    .seen_slowdown_permille = row->slowdown_permille,
	    .claims = row->claims,
	    .company_ns = row->company_ns,
	    .company_launches = row->company_launches,
	    .has_memory_mismatch = row->flags & LL_CARD_MEMORY_MISMATCH,
	    .has_time_mismatch = row->flags & LL_CARD_TIME_MISMATCH,
	    .driver_bytes = row->driver_bytes,
	    .checked_ns = row->checked_ns,
	    .checked_gpu_ns = row->checked_gpu_ns,
	    .checked_busy_ns = row->checked_busy_ns,
	};
	fill_how(row, &ret_job->how);
	if (!job)
		return;
	const struct ll_limits *limits = &job->job.limits;
	ret_job->how.cap_permille = limits->compute_permille;
	ret_job->how.held_permille = row->held_permille;
	ret_job->how.seen_permille = row->slowdown_permille;
	ret_job->how.slice_us = (unsigned)row->slice_us;
	snprintf(ret_job->name, sizeof ret_job->name, "%s", job->job.tenant);
	ret_job->id = job->job.token[0];
	ret_job->priority = ll_priority_of_class(limits->priority);
	ret_job->memory_limit_bytes = limits->memory_bytes;
	ret_job->memory_request_bytes = limits->request_bytes;
	ret_job->compute_cap_permille = limits->compute_permille;
	ret_job->weight_permille = limits->weight_permille ? limits->weight_permille : LL_DEFAULT_WEIGHT_PERMILLE;
	ret_job->slowdown_permille = slowdown_of(limits);
	ret_job->how.target_permille = ret_job->slowdown_permille;
	ret_job->space_permille = limits->space_permille;
}

static void note_card(struct ll_status_card *status, const struct ll_daemon_view *view,
		      const struct ll_message_card_row *row)
{
	struct ll_status_job *job = &status->jobs[status->job_count++];
	enum ll_way way;
	fill_job(status, view, row, job);
	way = job->space_permille ? LL_WAY_SPACE : LL_WAY_SLICES;
	job->has_other_way = status->earlier_runs && ll_other_way_find(status->earlier_runs, row, way, &job->other_way);
	status->sharing = (enum ll_sharing)row->sharing;
	status->visits_permille = row->visits_permille;
}

/* Those beneath a higher class learn for whom they are held. */
static void note_held(struct ll_status_card *status, struct ll_status_job *job)
{
	for (size_t i = 0; i < status->job_count; i++) {
		const struct ll_status_job *other = &status->jobs[i];
		if (other->priority >= job->priority || other->held_permille <= job->how.held_permille)
			continue;
		job->how.held_for = other->name;
		job->how.held_permille = other->held_permille;
		job->how.target_permille = other->slowdown_permille;
		job->how.seen_permille = other->seen_slowdown_permille;
	}
}

static int compare_claims(const void *left, const void *right)
{
	const struct ll_status_claim *first = left, *second = right;
	return first->index < second->index ? -1 : first->index > second->index;
}

int ll_status_read_claims(struct ll_status_card *status, const struct ll_daemon_view *view, struct ll_err *err)
{
	const struct ll_list *list = &view->list;
	const char *uuid = status->card->uuid;
	status->claims = calloc(list->claim_count + 1, sizeof *status->claims);
	status->jobs = calloc(list->card_count + 1, sizeof *status->jobs);
	status->earlier_runs =
	    list->card_count > 1 ? ll_other_way_read(ll_driver_sim_folder(status->card->driver)) : NULL;
	if (!status->claims || !status->jobs)
		return ll_err_set(err, -ENOMEM, "claims: %s", strerror(ENOMEM));
	for (size_t i = 0; i < list->claim_count; i++) {
		if (strcmp(list->claims[i].uuid, uuid) == 0)
			fill_claim(status, view, &list->claims[i], &status->claims[status->claim_count++]);
	}
	for (size_t i = 0; i < list->card_count; i++) {
		if (strcmp(list->cards[i].uuid, uuid) == 0)
			note_card(status, view, &list->cards[i]);
	}
	for (size_t i = 0; i < status->job_count; i++)
		note_held(status, &status->jobs[i]);
	qsort(status->claims, status->claim_count, sizeof *status->claims, compare_claims);
	ll_status_read_hold(status);
	return 0;
}
