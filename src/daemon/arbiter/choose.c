#include "daemon/arbiter/choose.h"

#include <math.h>

#include "daemon/arbiter/act.h"
#include "daemon/arbiter/classes.h"
#include "daemon/arbiter/decisions.h"
#include "daemon/arbiter/gang.h"
#include "daemon/arbiter/how_shared.h"
#include "daemon/arbiter/virtual_time.h"
#include "daemon/arbiter/windows.h"

/* ---- the jobs that share the card ---- */

struct crowd {
	const struct ll_share_job *one; /* one of the jobs that want the card; NULL: none wants it */
	bool has_any, has_new, has_several;
	bool has_waiter;             /* one of them waits for its launches, or its launch mode is not known yet */
	bool are_by_space, has_gang; /* all are clients of MPS; one works on several cards */
	bool have_classes;           /* they are of several classes */
	unsigned rank;
};

static bool is_new(const struct ll_share_claim *claim, uint64_t now_ns)
{
	bool has_come = claim->came_ns && ll_share_elapsed_ns(claim->came_ns, now_ns) > LL_SHARE_NEW_NS;
	return claim->said.launch_mode == LL_LAUNCH_MODE_UNKNOWN && !has_come;
}

static void add_to_crowd(struct crowd *crowd, const struct ll_share_claim *claim, uint64_t now_ns)
{
	const struct ll_share_job *job = claim->job;
	crowd->have_classes |= crowd->has_any && crowd->rank != job->rank;
	crowd->has_any = true;
	crowd->has_several |= crowd->one && crowd->one != job;
	crowd->one = job;
	crowd->has_new |= is_new(claim, now_ns);
	crowd->rank = job->rank;
	crowd->has_waiter |=
	    claim->said.launch_mode == LL_LAUNCH_MODE_SYNC || claim->said.launch_mode == LL_LAUNCH_MODE_UNKNOWN;
	crowd->are_by_space &= job->is_by_space;
	crowd->has_gang |= ll_share_is_in_gang(job, now_ns);
}

static struct crowd find_crowd(const struct ll_share_card *card, const struct ll_share_claim *more, uint64_t now_ns)
{
	struct crowd crowd = {.are_by_space = true};
	if (more)
		add_to_crowd(&crowd, more, now_ns);
	LL_SHARE_EACH_WANTING(card, claim)
	{
		if (!ll_share_is_unresponsive(claim, now_ns) && !ll_share_is_held(claim->job))
			add_to_crowd(&crowd, claim, now_ns);
	}
	return crowd;
}

static bool needs_visits(const struct ll_share_card *card, const struct crowd *crowd, uint64_t now_ns)
{
	if (!crowd->has_any || crowd->are_by_space)
		return false;
	if (ll_share_is_forced(card))
		return card->forced == LL_LIMIT_SHARING_VISITS;
	if (crowd->has_gang)
		return crowd->has_waiter;
	if (card->has_class_slices)
		return false;
	if (ll_share_has_classes(card, now_ns)) /* jobs that are held now are not in the crowd */
		return crowd->has_new || (!crowd->have_classes && crowd->has_several && crowd->has_waiter);
	return card->regime.gives_visits || crowd->has_new;
}

bool ll_share_needs_visits(const struct ll_share_card *card, uint64_t now_ns)
{
	struct crowd crowd = find_crowd(card, NULL, now_ns);
	return needs_visits(card, &crowd, now_ns);
}

bool ll_share_would_need_visits(const struct ll_share_claim *claim, uint64_t now_ns)
{
	struct crowd crowd = find_crowd(claim->job->card, claim, now_ns);
	return needs_visits(claim->job->card, &crowd, now_ns);
}

/* ---- measurement ---- */

static void note_claim(struct ll_share_claim *claim, uint64_t now_ns)
{
	if (!claim->want_since_ns || claim->was_unresponsive)
		return;
	if (claim->said.launch_mode == LL_LAUNCH_MODE_SYNC || claim->said.launch_mode == LL_LAUNCH_MODE_SHORT)
		claim->waited_for_each_ns = now_ns;
}

/* Returns false if the job has not wanted the card lately. */
static bool describe_job(const struct ll_share_job *job, uint64_t now_ns, struct ll_regime_job *ret_job)
{
	*ret_job = (struct ll_regime_job){.id = job->id,
					  .visited_ns = job->visited_ns,
					  .weight_permille = job->weight_permille,
					  .has_slices = job->card->has_slices && !job->card->keeps_slices};
	LL_SHARE_EACH_OF(job, claim)
	{
		note_claim(claim, now_ns);
		if (!ll_share_is_lately(claim->wanted_ns, now_ns))
			continue;
		ret_job->processes++;
		ret_job->waits |= ll_share_is_lately(claim->waited_for_each_ns, now_ns);
		ret_job->completed += claim->said.completed_launches;
		ret_job->queued_launches += claim->want_since_ns ? claim->said.queued_launches : 0;
	}
	return ret_job->processes;
}

static size_t describe_all(const struct ll_share_card *card, uint64_t now_ns, struct ll_regime_job *jobs, size_t most)
{
	size_t count = 0;
	for (struct ll_share_job *job = card->jobs; job && count < most; job = job->next)
		count += describe_job(job, now_ns, &jobs[count]);
	return count;
}

/* Jobs that a rule serves are not measured. */
static bool is_ruled(const struct ll_share_card *card, uint64_t now_ns)
{
	struct crowd crowd = find_crowd(card, NULL, now_ns);
	bool is_without = crowd.has_any && (crowd.are_by_space || crowd.has_gang);
	return ll_share_is_forced(card) || is_without || ll_share_has_classes(card, now_ns);
}

static bool is_shared_now(const struct ll_share_card *card)
{
	LL_SHARE_EACH_WANTING(card, claim)
	{
		if (claim->job != card->wanting->job)
			return true;
	}
	return false;
}

uint64_t ll_share_choose(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new)
{
	struct ll_regime_job jobs[LL_REGIME_JOBS + 1];
	bool gave_visits = card->regime.gives_visits, had_windows = card->has_windows;
	*ret_is_new = false;
	uint64_t windows_due_ns = ll_share_step_windows(card, now_ns, ret_is_new);
	*ret_is_new |= had_windows != card->has_windows;
	if (card->has_windows)
		return windows_due_ns;
	uint64_t class_due_ns = ll_share_step_classes(card, now_ns, ret_is_new);
	class_due_ns = windows_due_ns < class_due_ns ? windows_due_ns : class_due_ns;
	ll_share_count_visit(card, now_ns);
	if (ll_share_is_forced(card))
		return class_due_ns;
	bool has_rule = is_ruled(card, now_ns);
	size_t count = describe_all(card, now_ns, jobs, LL_REGIME_JOBS + 1);
	count = has_rule ? 0 : count;
	ll_regime_step(&card->regime, jobs, count, now_ns);
	ll_decisions_note(card, jobs, count, has_rule, now_ns);
	if (card->regime.moves & LL_REGIME_MOVE_VERDICT)
		ll_share_note_verdict(card, jobs, count, now_ns);
	if (card->regime.is_drained)
		ll_share_even_out(card);
	*ret_is_new |= gave_visits != card->regime.gives_visits;
	uint64_t due_ns = card->regime.is_trying || is_shared_now(card) ? card->regime.due_ns : UINT64_MAX;
	return due_ns < class_due_ns ? due_ns : class_due_ns;
}

/* ---- for users ---- */

static const enum ll_sharing words[] = {
    [LL_REGIME_NO_REASON] = LL_SHARING_SLICES,     [LL_REGIME_NOT_MEASURED] = LL_SHARING_SLICES_YET,
    [LL_REGIME_MEASURES] = LL_SHARING_MEASURED,    [LL_REGIME_PAYS] = LL_SHARING_VISITS_PAY,
    [LL_REGIME_PAYS_NOT] = LL_SHARING_SLICES_PAY,  [LL_REGIME_TOO_DEEP] = LL_SHARING_TOO_DEEP,
    [LL_REGIME_TOO_MANY] = LL_SHARING_VISITS_RULE,
};

enum ll_sharing ll_share_sharing(const struct ll_share_card *card, uint64_t now_ns)
{
	if (card->has_windows)
		return LL_SHARING_WINDOWS;
	if (!is_ruled(card, now_ns))
		return words[card->regime.why];
	if (!ll_share_is_forced(card) && ll_share_has_classes(card, now_ns) && !ll_share_has_gang(card, now_ns))
		return LL_SHARING_CLASSES;
	return ll_share_needs_visits(card, now_ns) ? LL_SHARING_VISITS_RULE : LL_SHARING_SLICES;
}

unsigned ll_share_visits_permille(const struct ll_share_card *card)
{
	double permille = 1000 * exp(card->regime.gain);
	bool is_known = card->regime.why == LL_REGIME_PAYS || card->regime.why == LL_REGIME_PAYS_NOT;
	return is_known && permille < UINT32_MAX ? (unsigned)lrint(permille) : 0;
}
