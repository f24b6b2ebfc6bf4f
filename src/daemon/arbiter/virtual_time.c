#include "daemon/arbiter/virtual_time.h"

#include "rules/share/visits.h"

/* Finds the least virtual time of the class's contenders that may use the card now. Contenders without tokens do not
 * count. Returns false if there is none. */
static bool least_of_class(const struct ll_share_scan *scan, unsigned rank, uint64_t *ret_ns)
{
	uint64_t least_ns = UINT64_MAX;
	for (size_t i = 0; i < scan->count; i++) {
		const struct ll_contender *other = &scan->contenders[i];
		if (other->rank == rank && other->has_tokens && other->virtual_ns < least_ns)
			least_ns = other->virtual_ns;
	}
	*ret_ns = least_ns;
	return least_ns != UINT64_MAX;
}

/* Returns the largest virtual time of the class's jobs, whether they want the card or not; 0: there is none. */
static uint64_t most_of_class(const struct ll_share_card *card, unsigned rank)
{
	uint64_t most_ns = 0;
	for (const struct ll_share_job *job = card->jobs; job; job = job->next) {
		if (job->claims && job->rank == rank && job->virtual_ns > most_ns)
			most_ns = job->virtual_ns;
	}
	return most_ns;
}

static void limit_behind(struct ll_share_job *job, uint64_t least_ns)
{
	job->virtual_ns = ll_visits_come_back_ns(job->virtual_ns, least_ns, job->weight_permille);
}

static void limit_ahead(struct ll_share_job *job, uint64_t least_ns)
{
	uint64_t most_ns = least_ns + ll_visits_virtual_ns(LL_VISIT_LAG_NS, job->weight_permille);
	if (job->virtual_ns > most_ns)
		job->virtual_ns = most_ns;
}

void ll_share_come_back(struct ll_share_job *job, const struct ll_share_scan *scan)
{
	uint64_t from_ns;
	if (!least_of_class(scan, job->rank, &from_ns))
		from_ns = most_of_class(job->card, job->rank);
	limit_behind(job, from_ns);
}

void ll_share_limit_credit(struct ll_share_job *job, const struct ll_share_scan *scan)
{
	uint64_t least_ns;
	if (least_of_class(scan, job->rank, &least_ns))
		limit_behind(job, least_ns);
}

void ll_share_forgive(struct ll_share_job *job, const struct ll_share_scan *scan)
{
	uint64_t least_ns;
	if (least_of_class(scan, job->rank, &least_ns))
		limit_ahead(job, least_ns);
}

void ll_share_even_out(struct ll_share_card *card)
{
	uint64_t most_ns = 0;
	LL_SHARE_EACH_WANTING(card, claim)
	most_ns = claim->job->virtual_ns > most_ns ? claim->job->virtual_ns : most_ns;
	LL_SHARE_EACH_WANTING(card, claim)
	claim->job->virtual_ns = most_ns;
}

void ll_share_enter_class(struct ll_share_job *job, uint64_t now_ns)
{
	struct ll_share_scan scan;
	ll_share_scan_card(job, NULL, now_ns, &scan);
	ll_share_come_back(job, &scan);
	ll_share_forgive(job, &scan);
}
