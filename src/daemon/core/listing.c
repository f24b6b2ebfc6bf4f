#include "daemon/core/listing.h"

#include <string.h>

#include "base/clock.h"
#include "daemon/arbiter/decisions.h"
#include "daemon/arbiter/how_shared.h"
#include "daemon/core/connection.h"
#include "daemon/jobs/jobs.h"
#include "daemon/residency/residency.h"
#include "protocol/accounts.h"
#include "protocol/words.h"

/* ---- tenants, jobs, processes ---- */

static uint32_t count_processes(const struct ll_server *server, const struct ll_job *job)
{
	uint32_t count = 1; /* its first */
	for (const struct ll_user *user = server->users; user; user = user->next)
		count += user->job == job;
	return count;
}

static void make_job_row(const struct ll_server *server, const struct ll_job *job, union ll_message *ret_message)
{
	ll_message_init(ret_message, LL_MESSAGE_JOB_ROW);
	struct ll_message_job_row *row = &ret_message->job_row;
	row->number = job->number;
	row->lending = ll_lending_of(server, job);
	row->job = job->facts;
	row->job.flags = ll_job_flags(job);
	row->monitor_pid = ll_job_monitor_pid(job);
	row->processes = count_processes(server, job);
	memcpy(row->tenant, job->department_tenant, sizeof row->tenant);
	memcpy(row->project, job->project, sizeof row->project);
	memcpy(row->pod, job->pod, sizeof row->pod);
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
	_Static_assert((int)LL_TIME_PARTS <= (int)LL_MINUTE_PARTS, "a row has room for a minute");
	row->minute_ns = ll_minute_read(&card->minute.minute, now_ns, row->minute_permille);
	row->waiting_pid = card->minute.waiting_pid;
	row->waiting_for = card->minute.waiting_for;
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
	if (view.is_suspended)
		row->residency = LL_CLAIM_STOPPED;
	ll_residency_describe(server, claim, row);
}

/* ---- the order of rows ---- */

void ll_list_cards(struct ll_connection *connection, const struct ll_job *job)
{
	const struct ll_job_claims *claims = job->claims;
	union ll_message row;
	for (uint32_t i = 0; i < claims->card_count; i++) {
		make_card_row(claims->cards[i], &row);
		ll_connection_row(connection, &row);
		for (const struct ll_job_claim *claim = claims->cards[i]->claims; claim; claim = claim->next) {
			make_claim_row(connection->server, claim, &row);
			ll_connection_row(connection, &row);
		}
	}
}

void ll_list_books(struct ll_connection *connection)
{
	const struct ll_server *server = connection->server;
	union ll_message row, end;
	ll_message_init(&end, LL_MESSAGE_LIST_END);
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		make_job_row(server, job, &row);
		if (ll_connection_row(connection, &row)) { /* the receiver may know of the job */
			end.list_end.jobs++;
			end.list_end.processes += count_processes(server, job);
		}
		ll_list_cards(connection, job);
	}
	for (const struct ll_tenant *tenant = server->books.tenants; tenant; tenant = tenant->next) {
		make_tenant_row(server, tenant, &row);
		end.list_end.tenants += ll_connection_row(connection, &row);
	}
	ll_connection_row(connection, &end);
}

/* ---- decisions ---- */

_Static_assert((int)LL_DECISION_MIXES == (int)LL_REGIME_MIXES, "a message has all of them");

static void make_mix(const struct ll_regime_mix *mix, struct ll_decision_mix *ret_mix)
{
	*ret_mix = (struct ll_decision_mix){.number = mix->number,
					    .used_ns = mix->used_ns,
					    .next_ns = mix->next_ns,
					    .gain = mix->gain,
					    .tries = mix->tries,
					    .why = (uint32_t)mix->why,
					    .gives_visits = mix->gives_visits};
}

static void make_state(const struct ll_decisions *decisions, union ll_message *ret_message)
{
	const struct ll_regime *base = &decisions->base;
	const struct ll_decision *oldest = ll_decisions_from(decisions, 0);
	ll_message_init(ret_message, LL_MESSAGE_DECISIONS_STATE);
	struct ll_message_decisions_state *state = &ret_message->decisions_state;
	state->number = oldest ? oldest->number : 0;
	state->new_mix = base->new_mix;
	state->new_mix_ns = base->new_mix_ns;
	state->credit_at_ns = base->credit_at_ns;
	state->credit_ns = base->credit_ns;
	state->gain = base->gain;
	state->gives_visits = base->gives_visits;
	state->why = (uint32_t)base->why;
	state->mix = base->mix ? (uint32_t)(base->mix - base->mixes) + 1 : 0;
	state->has_half = base->is_trying;
	for (size_t i = 0; i < LL_REGIME_MIXES; i++)
		make_mix(&base->mixes[i], &state->mixes[i]);
}

static void make_decision(const struct ll_decision *decision, union ll_message *ret_message)
{
	uint64_t now_ns = ll_now_ns();
	ll_message_init(ret_message, LL_MESSAGE_DECISION);
	struct ll_message_decision *row = &ret_message->decision;
	row->number = decision->number;
	row->at_ns = decision->at_ns;
	row->age_ns = now_ns > decision->at_ns ? now_ns - decision->at_ns : 0;
	row->gain = decision->gain;
	row->moves = decision->moves;
	row->why = (uint32_t)decision->why;
	row->flags = (decision->gives_visits ? LL_DECISION_GIVES_VISITS : 0U) |
		     (decision->is_ruled ? LL_DECISION_IS_RULED : 0U) |
		     (decision->lever.was_known ? LL_DECISION_WAS_KNOWN : 0U);
	row->block = decision->block;
	row->jobs = decision->count;
	row->lever = (uint32_t)decision->lever.move;
	row->part = decision->lever.part;
	row->from_part = decision->lever.from_part;
	row->slice_us = decision->lever.slice_us;
	row->busy = decision->lever.busy;
	row->weighed_s = decision->lever.weighed_s;
	row->rank = decision->rank;
}

static void make_decision_job(const struct ll_decisions *decisions, const struct ll_decision *decision, unsigned index,
			      union ll_message *ret_message)
{
	const struct ll_decision_job *job = ll_decisions_job(decisions, decision, index);
	ll_message_init(ret_message, LL_MESSAGE_DECISION_JOB);
	struct ll_message_decision_job *row = &ret_message->decision_job;
	row->number = decision->number;
	row->id = job->job.id;
	row->completed = job->job.completed;
	row->queued_launches = job->job.queued_launches;
	row->visited_ns = job->job.visited_ns;
	row->slices = job->rates.slices;
	row->visits = job->rates.visits;
	row->alone = job->rates.alone;
	row->weight_permille = job->job.weight_permille;
	row->processes = job->job.processes;
	row->waits = job->job.waits;
	row->has_slices = job->job.has_slices;
	row->slowdown_permille = job->slowdown_permille;
	row->held_launches = job->gauge.launches[LL_LEVER_HELD];
	row->held_s = job->gauge.seconds[LL_LEVER_HELD];
	row->open_launches = job->gauge.launches[LL_LEVER_OPEN];
	row->open_s = job->gauge.seconds[LL_LEVER_OPEN];
	memcpy(row->tenant, job->tenant, sizeof row->tenant);
}

void ll_list_decisions(struct ll_connection *connection, const char *uuid)
{
	const struct ll_decisions *decisions = ll_cards_decisions(&connection->server->cards, uuid);
	union ll_message row;
	if (decisions) {
		make_state(decisions, &row);
		ll_connection_row(connection, &row);
	}
	const struct ll_decision *decision = decisions ? ll_decisions_from(decisions, 0) : NULL;
	for (; decision; decision = ll_decisions_from(decisions, decision->number + 1)) {
		make_decision(decision, &row);
		ll_connection_row(connection, &row);
		for (unsigned i = 0; i < decision->count; i++) {
			make_decision_job(decisions, decision, i, &row);
			ll_connection_row_of(connection, ll_decisions_job(decisions, decision, i)->uid, &row);
		}
	}
	ll_message_init(&row, LL_MESSAGE_DECISIONS_END);
	ll_connection_row(connection, &row);
}
