#include "daemon/core/listing.h"

#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "daemon/arbiter/how_shared.h"
#include "daemon/jobs/claims.h"
#include "daemon/jobs/users.h"
#include "daemon/residency/memory.h"
#include "daemon/residency/residency.h"
#include "protocol/accounts.h"
#include "protocol/words.h"

/* ---- tenants, jobs, processes ---- */

static uint32_t count_processes(const struct ll_server *server, const struct ll_job *job)
{
	uint32_t count = 0;
	for (const struct ll_job_process *process = job->processes; process; process = process->next)
		count++;
	for (const struct ll_user *user = server->users; user; user = user->next)
		count += user->job == job;
	return count;
}

static void make_job_row(const struct ll_server *server, const struct ll_job *job, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_JOB_ROW);
	struct ll_message_job_row *row = &ret_message->job_row;
	row->number = job->number;
	row->job = job->facts;
	row->job.flags = ll_job_flags(job);
	row->monitor_pid = ll_job_monitor_pid(job);
	row->processes = count_processes(server, job);
	memcpy(row->tenant, job->department_tenant, sizeof row->tenant);
	memcpy(row->project, job->project, sizeof row->project);
}

static void make_process_row(const struct ll_job *job, uint32_t pid, uint32_t role, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_PROCESS_ROW);
	ret_message->process_row.job_number = job->number;
	ret_message->process_row.pid = pid;
	ret_message->process_row.role = role;
}

static void make_tenant_row(const struct ll_server *server, const struct ll_tenant *tenant,
			    union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_TENANT_ROW);
	struct ll_message_tenant_row *row = &ret_message->tenant_row;
	row->number = tenant->number;
	row->limits = *ll_books_tenant_limits(&server->books, tenant);
	row->uid = tenant->uid;
	row->jobs = tenant->jobs;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next)
		row->processes += job->tenant == tenant ? count_processes(server, job) : 0;
	ll_message_text_set(row->name, sizeof row->name, tenant->name);
}

/* ---- cards and claims ---- */

/* A process reports LL_CARD_IS_LOST at least once a second while it is so. */
#define LOST_FRESH_NS (3 * LL_NS_PER_S)

static uint64_t age_ns(uint64_t since_ns, uint64_t now_ns)
{
	return since_ns && since_ns < now_ns ? now_ns - since_ns : 0;
}

static void describe_how(const struct ll_job_card *card, uint64_t now_ns, struct ll_message_card_row *row)
{
	struct ll_share_how how;
	ll_card_job_read_how(card->share, now_ns, &how);
	row->flags |= (how.is_beneath ? LL_CARD_IS_BENEATH : 0U) | (how.is_capped ? LL_CARD_IS_CAPPED : 0U) |
		      (how.is_forced ? LL_CARD_IS_FORCED : 0U);
	row->shared = how.shared;
	row->slices_speed_permille = how.slices_permille;
	row->visits_speed_permille = how.visits_permille;
	row->measured_age_ns = how.measured_ns ? age_ns(how.measured_ns, now_ns) + 1 : 0;
}

static void make_card_row(const struct ll_job_card *card, union ll_message *ret_message)
{
	const struct ll_page_card *page = &card->job->pages.page->cards[card->index];
	struct ll_card_job_view view;
	uint64_t now_ns = ll_now_ns(), lost_seen_ns = page->lost_seen_ns;
	ll_card_job_read(card->share, &view);
	ll_message_init(ret_message, LL_MESSAGE_CARD_ROW);
	struct ll_message_card_row *row = &ret_message->card_row;
	row->job_number = card->job->number;
	row->used_bytes = ll_memory_used_bytes(card);
	row->leaving_bytes = ll_memory_leaving_bytes(card);
	row->gpu_time_ns = view.gpu_time_ns;
	row->virtual_time_ns = view.virtual_time_ns;
	row->tokens_ns = view.tokens_ns;
	row->flags = (view.is_held ? LL_CARD_IS_HELD : 0U) | (view.is_holder ? LL_CARD_IS_HOLDER : 0U);
	if (lost_seen_ns && age_ns(lost_seen_ns, now_ns) < LOST_FRESH_NS) {
		row->flags |= LL_CARD_IS_LOST;
		row->lost_ns = age_ns(page->lost_since_ns, now_ns);
	}
	row->recent_permille = view.recent_permille;
	row->recent_ns = view.recent_ns;
	describe_how(card, now_ns, row);
	row->claims = card->claim_count;
	row->repairs = card->repairs;
	row->flags |= (ll_mismatch_has_memory(card) ? LL_CARD_MEMORY_MISMATCH : 0U) |
		      (ll_mismatch_has_time(card) ? LL_CARD_TIME_MISMATCH : 0U);
	row->driver_bytes = card->mismatch.driver_bytes;
	row->checked_ns = card->mismatch.checked_ns;
	row->checked_gpu_ns = card->mismatch.checked_gpu_ns;
	row->checked_busy_ns = card->mismatch.checked_busy_ns;
	row->sharing = view.sharing;
	row->held_permille = view.held_permille;
	row->slowdown_permille = view.slowdown_permille;
	row->slice_us = view.slice_us;
	row->visits_permille = view.visits_permille;
	row->program = view.program;
	row->others = view.others;
	row->company_ns = view.company_ns;
	row->company_launches = view.company_launches;
	memcpy(row->uuid, card->uuid, sizeof row->uuid);
	ll_accounts_read_card(card->job->pages.page, card->index, now_ns, &row->accounts);
}

static uint32_t zero_beyond(uint32_t value, uint32_t last)
{
	return value <= last ? value : 0;
}

static uint64_t idle_ns(uint64_t activity_ns, uint64_t now_ns)
{
	if (activity_ns == LL_ACTIVITY_NOW)
		return 0;
	return activity_ns ? age_ns(activity_ns, now_ns) + 1 : UINT64_MAX;
}

/* The part of the row that the process reports about itself. */
static void describe_claim(const struct ll_page_slot *slot, struct ll_message_claim_row *row)
{
	char note[sizeof row->note];
	uint64_t now_ns = ll_now_ns(), want_since_ns = slot->want_since_ns;
	row->used_bytes = LL_MEMORY_USED(slot->memory) * LL_MEMORY_UNIT;
	row->evictable_bytes = slot->evictable_bytes;
	row->away_bytes = slot->away_bytes;
	row->gpu_time_ns = slot->gpu_time_ns;
	row->taken_age_ns = age_ns(slot->taken_ns, now_ns);
	row->idle_ns = idle_ns(slot->activity_ns, now_ns);
	row->wanting_ns = want_since_ns ? age_ns(want_since_ns, now_ns) + 1 : 0;
	row->state = zero_beyond(slot->state, LL_CLAIM_ENDING);
	row->residency = zero_beyond(slot->residency, LL_CLAIM_EVICTED);
	row->checkpoint = zero_beyond(slot->checkpoint, LL_CHECKPOINT_EVICTED);
	ll_accounts_read(slot, now_ns, &row->accounts);
	ll_page_read_note(slot, note);
	ll_message_text_set(row->note, sizeof row->note, note);
}

static uint32_t pid_of(const struct ll_server *server, const struct ll_job_claim *claim)
{
	struct ll_claim_identity identity;
	if (claim->user)
		return claim->user->pid;
	ll_claim_identify(claim, &identity);
	return identity.namespaces == server->namespaces && identity.pid > 0 ? (uint32_t)identity.pid : 0;
}

static void make_claim_row(const struct ll_server *server, const struct ll_job_claim *claim,
			   union ll_message *ret_message)
{
	struct ll_card_claim_view view;
	ll_card_claim_read(claim->share, &view);
	ll_message_init(ret_message, LL_MESSAGE_CLAIM_ROW);
	struct ll_message_claim_row *row = &ret_message->claim_row;
	row->job_number = claim->card->job->number;
	row->granted_bytes = claim->granted * LL_MEMORY_UNIT;
	row->index = ll_card_claim_number(claim->share);
	row->pid = pid_of(server, claim);
	row->flags = (view.is_held ? LL_CARD_IS_HELD : 0U) | (view.is_holder ? LL_CARD_IS_HOLDER : 0U);
	memcpy(row->uuid, claim->card->uuid, sizeof row->uuid);
	describe_claim(ll_claim_slot(claim), row);
	ll_residency_describe(server, claim, row);
}

/* ---- the order of rows ---- */

/* Returns the last listed job; NULL: there is none, or it has ended. */
static const struct ll_job *last_job(const struct ll_server *server, const struct ll_listing *listing)
{
	const struct ll_job *job = listing->job ? ll_books_after(&server->books, listing->job - 1) : NULL;
	return job && job->number == listing->job ? job : NULL;
}

/* Makes the next claim of the last listed card, or the next card. */
static bool next_on_cards(const struct ll_server *server, const struct ll_job *job, struct ll_listing *listing,
			  union ll_message *ret_message)
{
	const struct ll_job_claims *claims = job->claims;
	const struct ll_job_claim *claim = listing->cards ? claims->cards[listing->cards - 1]->claims : NULL;
	while (claim && claim->slot < listing->slot)
		claim = claim->next;
	if (claim) {
		listing->slot = claim->slot + 1;
		make_claim_row(server, claim, ret_message);
		return true;
	}
	if (listing->cards == claims->card_count)
		return false;
	make_card_row(claims->cards[listing->cards++], ret_message);
	listing->slot = 0;
	return true;
}

static bool next_process(const struct ll_job *job, struct ll_listing *listing, union ll_message *ret_message)
{
	const struct ll_job_process *process = job->processes;
	for (uint32_t i = 0; process && i < listing->process; i++)
		process = process->next;
	if (!process)
		return false;
	uint32_t pid = ll_process_has_ended(process->fd) ? 0 : (uint32_t)ll_process_id_of_fd(process->fd);
	make_process_row(job, pid, process->role, ret_message);
	listing->process++;
	listing->processes++;
	return true;
}

static bool next_user(const struct ll_server *server, const struct ll_job *job, struct ll_listing *listing,
		      union ll_message *ret_message)
{
	const struct ll_user *found = NULL;
	for (const struct ll_user *user = server->users; user; user = user->next) {
		if (user->job == job && user->number > listing->user && (!found || user->number < found->number))
			found = user;
	}
	if (!found)
		return false;
	make_process_row(job, found->pid, LL_PROCESS_USER, ret_message);
	listing->user = found->number;
	listing->processes++;
	return true;
}

static bool next_of_job(const struct ll_server *server, struct ll_listing *listing, union ll_message *ret_message)
{
	const struct ll_job *job = last_job(server, listing);
	return job && (next_on_cards(server, job, listing, ret_message) || next_process(job, listing, ret_message) ||
		       next_user(server, job, listing, ret_message));
}

bool ll_listing_next(const struct ll_server *server, struct ll_listing *listing, union ll_message *ret_message)
{
	if (next_of_job(server, listing, ret_message))
		return true;
	const struct ll_job *job = ll_books_after(&server->books, listing->job);
	if (job) {
		*listing = (struct ll_listing){.job = job->number,
					       .tenant = listing->tenant,
					       .tenants = listing->tenants,
					       .jobs = listing->jobs + 1,
					       .processes = listing->processes};
		make_job_row(server, job, ret_message);
		return true;
	}
	const struct ll_tenant *tenant = ll_books_tenant_after(&server->books, listing->tenant);
	if (tenant) {
		listing->tenant = tenant->number;
		listing->tenants++;
		make_tenant_row(server, tenant, ret_message);
		return true;
	}
	ll_message_init(ret_message, LL_MESSAGE_LIST_END);
	ret_message->list_end.tenants = listing->tenants;
	ret_message->list_end.jobs = listing->jobs;
	ret_message->list_end.processes = listing->processes;
	return false;
}
