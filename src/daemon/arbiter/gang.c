#include "daemon/arbiter/gang.h"

#include "daemon/arbiter/contender.h"

static struct ll_gang_work later_work(struct ll_gang_work a, struct ll_gang_work b)
{
	return a.seen_ns > b.seen_ns ? a : b;
}

/* Returns the last posted work of the job on the card. */
static struct ll_gang_work read_work_of(const struct ll_share_job *job)
{
	struct ll_gang_work work = {0};
	LL_SHARE_EACH_OF(job, claim)
	{
		struct ll_gang_work own = {.seen_ns = claim->said.at_ns, .launches = claim->said.queued_launches};
		if (own.launches)
			work = later_work(work, own);
	}
	return work;
}

/* Whether the claim works, or has paused so briefly that it is expected to go on. */
static bool is_active_claim(const struct ll_share_claim *claim, uint64_t now_ns)
{
	return claim->want_since_ns || ll_share_elapsed_ns(claim->said.activity_ns, now_ns) < LL_GANG_PAUSE_NS;
}

static bool has_active_claim(const struct ll_share_job *job, uint64_t now_ns)
{
	LL_SHARE_EACH_OF(job, claim)
	{
		if (is_active_claim(claim, now_ns))
			return true;
	}
	return false;
}

static bool has_turn(const struct ll_share_job *job)
{
	return job->card->holder && job->card->holder->job == job;
}

/* Whether the holder of the first card is another gang with that first card, works on this card, and is of no lower
 * class than the claim's job. */
static bool yields_to_holder_of(const struct ll_share_claim *claim, const struct ll_share_card *first, uint64_t now_ns)
{
	const struct ll_share_job *here = claim->job->card->jobs;
	if (!first->holder)
		return false;
	while (here && here->id != first->holder->job->id)
		here = here->next;
	return here && here->first_card == first && here->rank <= claim->job->rank && has_active_claim(here, now_ns);
}

static bool is_other_gang(const struct ll_share_job *job, const struct ll_share_claim *claim,
			  const struct ll_share_card *first)
{
	return job != claim->job && job->first_card == first;
}

/* Whether another gang with the same first card is active here. Otherwise the first card decides no turn here. */
static bool has_other_gang(const struct ll_share_claim *claim, const struct ll_share_card *first, uint64_t now_ns)
{
	for (const struct ll_share_job *job = claim->job->card->jobs; job; job = job->next) {
		if (is_other_gang(job, claim, first) && has_active_claim(job, now_ns))
			return true;
	}
	return false;
}

/* Only one gang has the turn at a time. Otherwise two gangs would go first here until the report of the earlier one
 * expires. */
static void end_other_gang_turns(const struct ll_share_claim *claim, const struct ll_share_card *first)
{
	for (struct ll_share_job *job = claim->job->card->jobs; job; job = job->next) {
		if (is_other_gang(job, claim, first))
			job->gang_turn_until_ns = 0;
	}
}

/* Posts on the first card that another card has work of the job. */
static void post_work(struct ll_share_job *first, const struct ll_share_claim *claim, uint32_t launches,
		      uint64_t now_ns)
{
	first->others_launches = launches;
	first->others_busy_ns = now_ns;
	first->others_said_ns = claim->said.at_ns;
}

/* Withdraws the post, unless another claim has posted since. The post stays valid for LL_GANG_LOOK_NS, until all other
 * claims have posted again. */
static void withdraw_work(struct ll_share_job *first, uint64_t posted_ns)
{
	if (first->others_busy_ns != posted_ns)
		return;
	first->others_busy_ns -= LL_GANG_FRESH_NS - LL_GANG_LOOK_NS;
	first->others_said_ns -= LL_GANG_FRESH_NS - LL_GANG_LOOK_NS;
}

/* Reads the work of the first card, and posts the work of the claim's card there. */
static void exchange_work(struct ll_share_claim *claim, struct ll_share_job *first, uint64_t now_ns)
{
	struct ll_gang *gang = &claim->gang;
	uint32_t launches = claim->said.queued_launches;
	struct ll_gang_work elsewhere = {.seen_ns = first->others_said_ns, .launches = first->others_launches};
	gang->is_ending = has_turn(first) && ll_share_is_fresh(first->ending_ns, now_ns);
	gang->yields_to_gang = !has_turn(first) && yields_to_holder_of(claim, first->card, now_ns);
	gang->work = later_work(read_work_of(first), elsewhere);
	if (launches)
		post_work(first, claim, ll_gang_closes(gang) ? launches : 0, now_ns);
	else if (gang->posted_ns)
		withdraw_work(first, gang->posted_ns);
	gang->posted_ns = launches ? now_ns : 0;
	if (has_turn(first))
		end_other_gang_turns(claim, first->card);
}

bool ll_share_look_first(struct ll_share_claim *claim, struct ll_share_job *first, uint64_t now_ns)
{
	bool is_gang = first && has_active_claim(first, now_ns);
	if (!claim->want_since_ns) {
		claim->gang = (struct ll_gang){0};
		return false;
	}
	claim->gang = (struct ll_gang){.posted_ns = claim->gang.posted_ns};
	claim->job->first_card = is_gang ? first->card : NULL;
	if (is_gang)
		first->worked_elsewhere_ns = now_ns;
	if (!is_gang)
		return false;
	bool is_shared = has_other_gang(claim, first->card, now_ns);
	if (is_shared)
		exchange_work(claim, first, now_ns);
	if (has_turn(first))
		claim->job->gang_turn_until_ns = now_ns + LL_SHARE_GANG_TURN_NS;
	return is_shared;
}

bool ll_share_is_in_gang(const struct ll_share_job *job, uint64_t now_ns)
{
	return job->first_card || ll_share_is_lately(job->worked_elsewhere_ns, now_ns);
}

bool ll_share_has_gang(const struct ll_share_card *card, uint64_t now_ns)
{
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (job->claims && ll_share_is_in_gang(job, now_ns))
			return true;
	}
	return false;
}
