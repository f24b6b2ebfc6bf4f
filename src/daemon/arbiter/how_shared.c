#include "daemon/arbiter/how_shared.h"

#include <math.h>

#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/contender.h"

/* A claim counts as present for this long after it last wanted the card. */
#define LATELY_NS UINT64_C(2000000000)
enum { PERMILLE = 1000, PERMILLE_MOST = 1000000 };

static struct ll_share_job *find_job(const struct ll_share_card *card, uint64_t id)
{
	struct ll_share_job *job = card->jobs;
	while (job && job->id != id)
		job = job->next;
	return job;
}

/* Returns 0 if unknown. */
static unsigned permille_of(double rate, double alone)
{
	double permille = alone > 0 ? PERMILLE * rate / alone : 0;
	return permille < PERMILLE_MOST ? (unsigned)lrint(permille) : PERMILLE_MOST;
}

void ll_share_note_verdict(struct ll_share_card *card, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		struct ll_share_job *job = find_job(card, jobs[i].id);
		struct ll_regime_rates rates = ll_regime_rates_of(&card->regime, i);
		if (!job)
			continue;
		job->measured = (struct ll_share_measured){.mix = card->regime.mix->number,
							   .at_ns = now_ns,
							   .slices_permille = permille_of(rates.slices, rates.alone),
							   .visits_permille = permille_of(rates.visits, rates.alone)};
	}
}

/* A process without a recent post may only have a busy host, so it still counts. */
static bool is_there(const struct ll_share_claim *claim, uint64_t now_ns)
{
	bool wants =
	    claim->want_since_ns || (claim->wanted_ns && ll_share_elapsed_ns(claim->wanted_ns, now_ns) <= LATELY_NS);
	return wants && ll_share_elapsed_ns(claim->said.at_ns, now_ns) <= LATELY_NS;
}

static bool has_others(const struct ll_share_job *job, uint64_t now_ns)
{
	LL_SHARE_EACH(job->card, claim)
	{
		if (claim->job != job && is_there(claim, now_ns))
			return true;
	}
	return false;
}

static enum ll_shared find_shared(const struct ll_share_job *job, uint64_t now_ns)
{
	if (job->time.period_ns)
		return LL_SHARED_WINDOWS;
	if (!has_others(job, now_ns))
		return LL_SHARED_ALONE;
	if (job->is_by_space)
		return LL_SHARED_SPACE;
	return ll_share_needs_visits(job->card, now_ns) ? LL_SHARED_VISITS : LL_SHARED_SLICES;
}

struct ll_share_how ll_share_how_shared(const struct ll_share_job *job, uint64_t now_ns)
{
	const struct ll_regime *regime = &job->card->regime;
	struct ll_share_how how = {
	    .shared = find_shared(job, now_ns),
	    .is_beneath = ll_share_has_superior(job, now_ns),
	    .is_capped = (job->is_windowed && job->cap_permille) ||
			 (job->empty_ns && ll_share_elapsed_ns(job->empty_ns, now_ns) <= LL_SHARE_CAPPED_NS),
	    .is_forced = job->card->forced,
	};
	if (regime->mix && job->measured.mix == regime->mix->number) {
		how.slices_permille = job->measured.slices_permille;
		how.visits_permille = job->measured.visits_permille;
		how.measured_ns = job->measured.at_ns;
	}
	return how;
}
