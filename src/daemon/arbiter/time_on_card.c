#include "daemon/arbiter/time_on_card.h"

#include "rules/share/tokens.h"
#include "rules/share/visits.h"

void ll_share_charge(struct ll_share_job *job, uint64_t gpu_ns)
{
	job->virtual_ns += ll_visits_virtual_ns(gpu_ns, job->weight_permille);
	job->used_ns += gpu_ns;
	if (job->cap_permille)
		job->tokens_ns -= (int64_t)gpu_ns;
}

int64_t ll_share_tokens_ns(const struct ll_share_job *job, uint64_t now_ns)
{
	if (!job->cap_permille)
		return INT64_MAX;
	if (!job->tokens_at_ns || now_ns <= job->tokens_at_ns)
		return job->tokens_ns;
	return ll_tokens_earn(job->tokens_ns, now_ns - job->tokens_at_ns, job->cap_permille);
}

int64_t ll_share_earn(struct ll_share_job *job, uint64_t now_ns)
{
	if (!job->cap_permille) {
		job->tokens_at_ns = 0;
		return INT64_MAX;
	}
	if (!job->tokens_at_ns)
		job->tokens_ns = 0;
	job->tokens_ns = ll_share_tokens_ns(job, now_ns);
	if (now_ns > job->tokens_at_ns)
		job->tokens_at_ns = now_ns;
	return job->tokens_ns;
}
