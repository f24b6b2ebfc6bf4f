#include "daemon/arbiter/decisions.h"

#include <math.h>

enum { STEP_JOBS_MOST = LL_REGIME_JOBS + 1 };

static uint64_t oldest_number(const struct ll_decisions *decisions)
{
	return decisions->last_number + 1 - decisions->count;
}

const struct ll_decision *ll_decisions_from(const struct ll_decisions *decisions, uint64_t number)
{
	uint64_t oldest = oldest_number(decisions);
	number = number < oldest ? oldest : number;
	return number <= decisions->last_number ? &decisions->records[number % LL_DECISIONS_MOST] : NULL;
}

const struct ll_decision_job *ll_decisions_job(const struct ll_decisions *decisions, const struct ll_decision *decision,
					       unsigned index)
{
	return &decisions->jobs[(decision->first + index) % LL_DECISIONS_JOBS_MOST];
}

static void step_base(struct ll_decisions *decisions, const struct ll_decision *decision)
{
	struct ll_regime_job jobs[STEP_JOBS_MOST];
	for (unsigned i = 0; i < decision->count; i++)
		jobs[i] = ll_decisions_job(decisions, decision, i)->job;
	ll_regime_step(&decisions->base, jobs, decision->count, decision->at_ns);
}

/* Drops the oldest record. If it is a step of the rule, the step is applied to `base`. */
static void drop_oldest(struct ll_decisions *decisions)
{
	const struct ll_decision *oldest = ll_decisions_from(decisions, 0);
	if (!oldest->lever.move)
		step_base(decisions, oldest);
	decisions->first_job = (decisions->first_job + oldest->count) % LL_DECISIONS_JOBS_MOST;
	decisions->job_count -= oldest->count;
	decisions->count--;
}

static bool has_room(const struct ll_decisions *decisions, unsigned jobs)
{
	return decisions->count < LL_DECISIONS_MOST && decisions->job_count + jobs <= LL_DECISIONS_JOBS_MOST;
}

static void make_room(struct ll_decisions *decisions, unsigned jobs)
{
	if (has_room(decisions, jobs))
		return;
	do
		drop_oldest(decisions);
	while (decisions->count && (decisions->base.is_trying || !has_room(decisions, jobs)));
}

void ll_decisions_add(struct ll_decisions *decisions, const struct ll_decision *decision,
		      const struct ll_decision_job *jobs)
{
	make_room(decisions, decision->count);
	struct ll_decision *record = &decisions->records[++decisions->last_number % LL_DECISIONS_MOST];
	*record = *decision;
	record->number = decisions->last_number;
	record->first = (decisions->first_job + decisions->job_count) % LL_DECISIONS_JOBS_MOST;
	for (unsigned i = 0; i < record->count; i++)
		decisions->jobs[(record->first + i) % LL_DECISIONS_JOBS_MOST] = jobs[i];
	decisions->job_count += record->count;
	decisions->count++;
}

/* Whose job it is, which is known as long as it is there. */
static void name_job(const struct ll_share_card *card, uint64_t id, struct ll_decision_job *noted)
{
	const struct ll_share_job *job = card->jobs;
	while (job && job->id != id)
		job = job->next;
	ll_message_text_set(noted->tenant, sizeof noted->tenant, job && job->tenant ? job->tenant : "");
	noted->uid = job ? job->uid : UINT32_MAX;
}

/* Returns a record with the present state of the rule. */
static struct ll_decision new_record(const struct ll_regime *regime, size_t count, uint64_t now_ns)
{
	return (struct ll_decision){.at_ns = now_ns,
				    .gives_visits = regime->gives_visits,
				    .why = regime->why,
				    .gain = regime->gain,
				    .count = (unsigned)count};
}

void ll_decisions_note(const struct ll_share_card *card, const struct ll_regime_job *jobs, size_t count, bool is_ruled,
		       uint64_t now_ns)
{
	const struct ll_regime *regime = &card->regime;
	struct ll_decision_job noted[STEP_JOBS_MOST];
	if (!regime->moves || !card->decisions)
		return;
	for (size_t i = 0; i < count; i++) {
		noted[i] = (struct ll_decision_job){.job = jobs[i]};
		if (regime->moves & LL_REGIME_MOVE_VERDICT)
			noted[i].rates = ll_regime_rates_of(regime, i);
		name_job(card, jobs[i].id, &noted[i]);
	}
	struct ll_decision decision = new_record(regime, count, now_ns);
	decision.is_ruled = is_ruled;
	decision.moves = regime->moves;
	decision.block = regime->is_trying ? regime->block : 0;
	ll_decisions_add(card->decisions, &decision, noted);
}

/* ---- the lever ---- */

static bool keeps_part(enum ll_lever_move move)
{
	return move == LL_LEVER_MOVE_STAYS || move == LL_LEVER_MOVE_UNSEEN;
}

static bool is_to_be_kept(const struct ll_lever_choice *choice, const struct ll_lever_choice *last)
{
	if (choice->move == LL_LEVER_MOVE_NONE)
		return false;
	if (fabs(choice->part - last->part) >= LL_DECISIONS_GRAIN)
		return true;
	if (keeps_part(choice->move))
		return !keeps_part(last->move);
	return choice->move != LL_LEVER_MOVE_MENDED && choice->move != last->move;
}

static void note_choice(const struct ll_share_card *card, unsigned rank, const struct ll_lever_choice *choice,
			const struct ll_lever_job *jobs, size_t count, uint64_t now_ns)
{
	struct ll_decision_job noted[STEP_JOBS_MOST];
	for (size_t i = 0; i < count; i++) {
		noted[i] = (struct ll_decision_job){.job = {.id = jobs[i].id, .completed = jobs[i].completed},
						    .gauge = *jobs[i].gauge,
						    .slowdown_permille = jobs[i].slowdown_permille};
		name_job(card, jobs[i].id, &noted[i]);
	}
	struct ll_decision decision = new_record(&card->regime, count, now_ns);
	decision.is_ruled = true;
	decision.lever = *choice;
	decision.rank = rank;
	ll_decisions_add(card->decisions, &decision, noted);
}

void ll_decisions_note_lever(const struct ll_share_card *card, unsigned rank, const struct ll_lever_job *jobs,
			     size_t count, uint64_t now_ns)
{
	const struct ll_lever_choice *choice = &card->levers[rank].choice;
	if (!card->decisions || !is_to_be_kept(choice, &card->decisions->levers[rank]))
		return;
	card->decisions->levers[rank] = *choice;
	note_choice(card, rank, choice, jobs, count, now_ns);
}

void ll_decisions_note_slices(const struct ll_share_card *card, unsigned rank, const struct ll_lever_job *jobs,
			      size_t count, uint64_t now_ns)
{
	const struct ll_class_slices *slices = &card->class_slices[rank];
	struct ll_lever_choice choice = {.move = LL_LEVER_MOVE_SLICES,
					 .part = slices->part,
					 .from_part = card->levers[rank].part,
					 .slice_us = slices->slice_us};
	if (card->decisions)
		note_choice(card, rank, &choice, jobs, count, now_ns);
}
