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

/* ---- what they had ---- */

#define CHECK_NS UINT64_C(2000000000)
/* Long slices that did not serve one of the jobs are not tried again for so long. */
#define AGAIN_NS UINT64_C(60000000000)
/* Of the time that passed: less, and programs did not always have work. */
static const double fills_card = 0.8;
/* Of an equal part of what all had: less, and the job has pauses in which it returns its slice. */
static const double fills_part = 0.9;

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

/* What the working jobs had of the card since the last check. */
struct had {
	unsigned jobs;
	unsigned rank; /* of one of them */
	bool are_ahead, is_one_class;
	double ns, smallest_ns;
};

static struct had count_had(struct ll_share_card *card)
{
	struct had had = {.are_ahead = true, .is_one_class = true};
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		job->slices_had_ns = job->used_ns - job->slices_used_ns;
		job->slices_used_ns = job->used_ns;
		if (weight_each(job) <= 0)
			continue;
		double ns = (double)job->slices_had_ns;
		had.smallest_ns = had.jobs && had.smallest_ns < ns ? had.smallest_ns : ns;
		had.rank = had.jobs ? had.rank : job->rank;
		had.is_one_class &= had.rank == job->rank;
		had.are_ahead &= launches_ahead(job);
		had.ns += ns;
		had.jobs++;
	}
	return had;
}

/* What the least and the most had is nearer to equal than to their weights if the card keeps its own slices. */
static bool obeys_weights(const struct ends *ends)
{
	double least_ns = (double)ends->least->slices_had_ns, most_ns = (double)ends->most->slices_had_ns;
	double asked = weight_each(ends->most) / weight_each(ends->least);
	return least_ns <= 0 || most_ns >= sqrt(asked) * least_ns;
}

/* Long slices lose less to changes of the context, and cost nobody while each always has work: then all get the same.
 */
static void check_long(struct ll_share_card *card, const struct had *had, bool are_full)
{
	bool is_served = are_full && had->smallest_ns * had->jobs >= fills_part * had->ns;
	if (card->has_long_slices && are_full && !is_served)
		card->long_again_ns = card->slices_at_ns + AGAIN_NS;
	card->has_long_slices = is_served && card->slices_at_ns >= card->long_again_ns;
}

static void check_slices(struct ll_share_card *card)
{
	uint64_t passed_ns = card->slices_at_ns - card->slices_checked_ns;
	bool is_first = !card->slices_checked_ns;
	if (!is_first && passed_ns < CHECK_NS)
		return;
	card->slices_checked_ns = card->slices_at_ns;
	struct had had = count_had(card);
	struct ends ends = find_ends(card, had.rank);
	bool are_full = !is_first && had.jobs > 1 && had.are_ahead && had.ns >= fills_card * (double)passed_ns;
	if (ends.least)
		card->keeps_slices |= are_full && !obeys_weights(&ends);
	else
		check_long(card, &had, are_full && had.is_one_class);
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
	us = peers ? by_weight_us(job) : 0;
	if (peers)
		return us || !card->has_long_slices ? us : LL_SLICES_MOST_US;
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
	unsigned working = 0;
	card->slices_at_ns = now_ns;
	card->has_slices = !is_without;
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		bool is_working = ll_share_wanted_lately(job, now_ns);
		working += is_working;
		card->has_slices &= !is_working || (!job->is_by_space && has_lever(job));
	}
	if (card->has_slices && working > 1 && !card->regime.gives_visits && !card->regime.is_trying) {
		check_slices(card);
	} else {
		card->slices_checked_ns = 0;
		card->has_long_slices = false;
	}
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
	return has_any || card->slices_checked_ns ? now_ns + CHECK_NS : UINT64_MAX;
}
