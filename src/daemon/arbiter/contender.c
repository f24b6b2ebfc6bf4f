#include "daemon/arbiter/contender.h"

#include "daemon/arbiter/classes.h"
#include "daemon/arbiter/time_on_card.h"

/* Bounds the reported value, because a program may report any value and its sum with the virtual time must not
 * overflow. */
static uint64_t running_ns(const struct ll_share_claim *claim, uint64_t now_ns)
{
	return claim->said.running_ns < now_ns ? claim->said.running_ns : now_ns;
}

bool ll_share_read(const struct ll_share_claim *claim, uint64_t now_ns, struct ll_contender *ret_contender)
{
	const struct ll_share_job *job = claim->job;
	if (!claim->want_since_ns)
		return false;
	*ret_contender = (struct ll_contender){
	    .rank = job->rank,
	    .weight_permille = job->weight_permille,
	    .virtual_ns = job->virtual_ns + ll_visits_virtual_ns(running_ns(claim, now_ns), job->weight_permille),
	    .waited_ns = ll_share_elapsed_ns(claim->want_since_ns, now_ns),
	    .first_card = (uint64_t)(uintptr_t)job->first_card,
	    .has_tokens = ll_share_tokens_ns(job, now_ns) > 0 && !ll_share_is_held(job),
	    .has_cap = job->cap_permille != 0,
	    .has_work = true,
	    .has_gang_turn = job->gang_turn_until_ns > now_ns,
	    .is_by_space = job->is_by_space,
	    .waits_for_each = claim->said.launch_mode != LL_LAUNCH_MODE_ASYNC,
	    .launches_ahead = claim->said.launch_mode == LL_LAUNCH_MODE_ASYNC,
	    .waits_on_card = claim->said.is_on_card,
	    .is_paused = claim->paused_since_ns,
	    .overruns = claim->overruns,
	    .ended_empty = claim->ended_empty,
	};
	return true;
}

static void scan_sibling(const struct ll_share_claim *sibling, struct ll_share_scan *scan)
{
	scan->siblings_queued_ns += sibling->said.queued_ns;
	scan->has_busy_sibling |= !sibling->said.queue_is_empty;
}

void ll_share_scan_card(const struct ll_share_job *job, const struct ll_share_claim *except, uint64_t now_ns,
			struct ll_share_scan *ret_scan)
{
	const struct ll_share_card *card = job->card;
	*ret_scan = (struct ll_share_scan){.contenders = card->contenders, .claims = card->others};
	LL_SHARE_EACH_WANTING(card, claim)
	{
		if (claim == except)
			continue;
		claim->was_unresponsive |= ll_share_is_unresponsive(claim, now_ns);
		if (claim->was_unresponsive) /* the queued work that a stopped process reported is out of date */
			continue;
		if (claim->job == job)
			scan_sibling(claim, ret_scan);
		else if (ll_share_read(claim, now_ns, &card->contenders[ret_scan->count]))
			card->others[ret_scan->count++] = claim;
	}
}

/* A claim at rest need not post. */
static bool is_alive(const struct ll_share_claim *claim, uint64_t now_ns)
{
	return !claim->want_since_ns || ll_share_elapsed_ns(claim->said.at_ns, now_ns) < LL_SHARE_SUPERIOR_NS;
}

bool ll_share_has_superior(const struct ll_share_job *job, uint64_t now_ns)
{
	for (const struct ll_share_job *other = job->card->jobs; other; other = other->next) {
		if (other->rank >= job->rank)
			continue;
		LL_SHARE_EACH_OF(other, claim)
		{
			if (is_alive(claim, now_ns))
				return true;
		}
	}
	return false;
}

unsigned ll_share_count(const struct ll_share_job *job, const struct ll_share_scan *scan, uint64_t least_ns)
{
	bool has_space = job->is_by_space;
	uint64_t pass = ++job->card->counts;
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++) {
		struct ll_share_job *other = scan->claims[i]->job;
		if (scan->claims[i]->said.queued_ns < least_ns)
			continue;
		bool is_new = other->is_by_space ? !has_space : other->seen != pass;
		has_space |= other->is_by_space;
		other->seen = pass;
		count += is_new;
	}
	return count;
}

unsigned ll_share_count_unwindowed(const struct ll_share_job *job, const struct ll_share_scan *scan)
{
	uint64_t pass = ++job->card->counts;
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++) {
		struct ll_share_job *other = scan->claims[i]->job;
		count += !other->is_windowed && other->seen != pass;
		other->seen = pass;
	}
	return count;
}

unsigned ll_share_count_overruns(const struct ll_share_scan *scan)
{
	unsigned count = 0;
	for (size_t i = 0; i < scan->count; i++)
		count += scan->contenders[i].overruns;
	return count;
}

bool ll_share_is_fresh(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && ll_share_elapsed_ns(at_ns, now_ns) <= LL_GANG_FRESH_NS;
}
