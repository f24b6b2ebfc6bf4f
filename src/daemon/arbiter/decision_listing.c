#include "daemon/arbiter/decision_listing.h"

#include <string.h>

#include "base/clock.h"
#include "daemon/arbiter/decisions.h"

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

static void make_job(const struct ll_decisions *decisions, const struct ll_decision *decision, unsigned index,
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

/* Returns the last listed decision if some of its jobs were not sent and it has not been dropped. */
static const struct ll_decision *find_unfinished(const struct ll_decisions *decisions,
						 const struct ll_decision_listing *listing)
{
	const struct ll_decision *decision = listing->number ? ll_decisions_from(decisions, listing->number) : NULL;
	bool is_it = decision && decision->number == listing->number && listing->jobs < decision->count;
	return is_it ? decision : NULL;
}

bool ll_decision_listing_next(const struct ll_cards *cards, struct ll_decision_listing *listing,
			      union ll_message *ret_message)
{
	const struct ll_decisions *decisions = ll_cards_decisions(cards, listing->uuid);
	if (decisions && !listing->has_state) {
		listing->has_state = true;
		make_state(decisions, ret_message);
		return true;
	}
	const struct ll_decision *decision = decisions ? find_unfinished(decisions, listing) : NULL;
	if (decision) {
		listing->uid = ll_decisions_job(decisions, decision, listing->jobs)->uid;
		make_job(decisions, decision, listing->jobs++, ret_message);
		return true;
	}
	decision = decisions ? ll_decisions_from(decisions, listing->number + 1) : NULL;
	if (decision) {
		listing->number = decision->number;
		listing->jobs = 0;
		make_decision(decision, ret_message);
		return true;
	}
	ll_message_init(ret_message, LL_MESSAGE_DECISIONS_END);
	return false;
}
