#include "daemon/arbiter/slices.h"

#include <math.h>

#include "daemon/arbiter/classes.h"
#include "daemon/arbiter/contender.h"

/* ---- by weight ---- */

/* Of each of the job's processes that work; 0: none does. */
static double weight_each(const struct ll_share_job *job)
{
	unsigned processes = 0;
	LL_SHARE_EACH_OF(job, claim)
	processes += ll_share_is_lately(claim->wanted_ns, job->card->slices_at_ns);
	return processes ? (double)job->weight_permille / processes : 0;
}

/* The jobs of a class with the least and with the largest weight. NULL: all have the same. */
struct ends {
	struct ll_share_job *least, *most;
};

static struct ends find_ends(const struct ll_share_card *card, unsigned rank)
{
	struct ends ends = {0};
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		double each = job->rank == rank ? weight_each(job) : 0;
		if (each > 0 && (!ends.least || each < weight_each(ends.least)))
			ends.least = job;
		if (each > 0 && (!ends.most || each > weight_each(ends.most)))
			ends.most = job;
	}
	bool are_equal = !ends.least || !ends.most || weight_each(ends.least) >= weight_each(ends.most);
	if (are_equal)
		ends = (struct ends){0};
	return ends;
}

static unsigned by_weight_us(const struct ll_share_job *job)
{
	struct ends ends = find_ends(job->card, job->rank);
	if (!ends.least)
		return 0;
	double least = weight_each(ends.least), most = weight_each(ends.most);
	return (unsigned)(fmin(LL_SLICES_LEAST_US, LL_SLICES_MOST_US * least / most) * weight_each(job) / least);
}

/* ---- whether the card obeys ---- */

#define CHECK_NS UINT64_C(2000000000)
/* Of the time that passed: less, and programs did not always have work. */
static const double fills_card = 0.8;

static bool launches_ahead(const struct ll_share_job *job)
{
	bool has_any = false;
	LL_SHARE_EACH_OF(job, claim)
	{
		if (claim->want_since_ns && claim->said.launch_mode != LL_LAUNCH_MODE_ASYNC)
			return false;
		has_any |= claim->want_since_ns;
	}
	return has_any;
}

/* Compares what the least and the most had since the last check. It is nearer to equal than to their weights if the
 * card keeps its own slices. */
static void check_slices(struct ll_share_card *card)
{
	uint64_t passed_ns = card->slices_at_ns - card->slices_checked_ns, used_ns = 0;
	bool is_due = card->slices_checked_ns && passed_ns >= CHECK_NS, are_ahead = true;
	if (card->slices_checked_ns && !is_due)
		return;
	struct ends ends = {0};
	double least_ns = 0, most_ns = 0;
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		uint64_t had_ns = job->used_ns - job->slices_used_ns;
		job->slices_used_ns = job->used_ns;
		if (weight_each(job) <= 0)
			continue;
		used_ns += had_ns;
		are_ahead &= launches_ahead(job);
		if (!ends.least)
			ends = find_ends(card, job->rank);
		least_ns = job == ends.least ? (double)had_ns : least_ns;
		most_ns = job == ends.most ? (double)had_ns : most_ns;
	}
	card->slices_checked_ns = card->slices_at_ns;
	if (!is_due || !are_ahead || !ends.least || !ends.most || least_ns <= 0 ||
	    (double)used_ns < fills_card * (double)passed_ns)
		return;
	double asked = weight_each(ends.most) / weight_each(ends.least), had = most_ns / least_ns;
	card->keeps_slices |= had < sqrt(asked);
}

/* ---- orders ---- */

static unsigned slice_us_of(const struct ll_share_job *job, uint64_t now_ns)
{
	const struct ll_share_card *card = job->card;
	unsigned us = 0, peers = 0, beneath = 0;
	if (!ll_share_wanted_lately(job, now_ns))
		return 0;
	for (const struct ll_share_job *other = card->jobs; other; other = other->next) {
		if (other == job || !ll_share_wanted_lately(other, now_ns))
			continue;
		unsigned beside_us = other->rank < job->rank ? card->class_slices[other->rank].slice_us : 0;
		us = beside_us && (!us || beside_us < us) ? beside_us : us;
		peers += other->rank == job->rank;
		beneath += other->rank > job->rank;
	}
	if (us)
		return card->has_class_slices ? us : 0;
	/* Free while alone, and a higher class that comes waits for a short slice at most. */
	if (!peers && !beneath)
		return job->rank == LL_PRIORITY_LOW || ll_share_has_superior(job, now_ns) ? LL_CLASS_SLICE_US : 0;
	if (peers)
		return by_weight_us(job);
	return card->has_class_slices ? LL_CLASS_SLICE_ABOVE_US : 0;
}

static bool has_lever(const struct ll_share_job *job)
{
	LL_SHARE_EACH_OF(job, claim)
	{
		if (claim->said.lever == LL_TIME_LEVER_WORKS)
			return true;
	}
	return false;
}

uint64_t ll_share_order_slices(struct ll_share_card *card, bool is_without, uint64_t now_ns, bool *ret_is_new)
{
	bool has_any = false;
	card->slices_at_ns = now_ns;
	card->has_slices = !is_without;
	for (struct ll_share_job *job = card->jobs; job; job = job->next)
		card->has_slices &= !ll_share_wanted_lately(job, now_ns) || (!job->is_by_space && has_lever(job));
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		struct ll_card_time time = {0};
		if (!is_without && !job->is_by_space && has_lever(job))
			time.slice_us = slice_us_of(job, now_ns);
		if (card->has_class_slices && ll_share_is_stopped(job))
			time.period_ns = LL_LEVER_PERIOD_NS;
		has_any |= ll_card_time_is_ordered(&time);
		*ret_is_new |= !ll_card_time_is_same(&job->time, &time);
		job->time = time;
	}
	if (!has_any || card->regime.gives_visits || card->regime.is_trying)
		card->slices_checked_ns = 0;
	else
		check_slices(card);
	return has_any ? now_ns + LL_SHARE_LATELY_NS : UINT64_MAX;
}
