#include "daemon/policy/weights.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/jobs/claims.h"

/* A training job that reads data or saves its state launches nothing for some seconds. */
#define LATELY_NS (30 * LL_NS_PER_S)

enum { WEIGHT_USUAL = 1000, WEIGHT_MAX = 100000 };

static uint64_t own_weight(const struct ll_job *job)
{
	return job->facts.limits.weight_permille ? job->facts.limits.weight_permille : WEIGHT_USUAL;
}

static bool is_active(const struct ll_job_card *card)
{
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		if (ll_card_claim_has_wanted(claim->share, LATELY_NS))
			return true;
	}
	return false;
}

/* Sums the own weights of the tenant's jobs that want the card, this one included. */
static uint64_t sum_of_tenant(const struct ll_server *server, const struct ll_job_card *card)
{
	uint64_t sum = 0;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		if (strcmp(job->department_tenant, card->job->department_tenant) != 0 || !job->claims)
			continue;
		const struct ll_job_card *other = ll_job_card_find(job, card->uuid);
		if (other && (other == card || is_active(other)))
			sum += own_weight(job);
	}
	return sum;
}

static uint32_t weight_of(const struct ll_server *server, const struct ll_job_card *card)
{
	const struct ll_job *job = card->job;
	const struct ll_config_tenant *tenant =
	    job->department_tenant[0] ? ll_department_find(&server->department, job->department_tenant) : NULL;
	uint64_t sum = sum_of_tenant(server, card);
	if (!tenant || !sum)
		return (uint32_t)own_weight(job);
	uint64_t weight = tenant->weight * WEIGHT_USUAL * own_weight(job) / sum;
	return weight < 1 ? 1 : weight > WEIGHT_MAX ? WEIGHT_MAX : (uint32_t)weight;
}

bool ll_weights_settle(struct ll_server *server)
{
	bool is_needed = false;
	for (struct ll_job *job = server->books.jobs; job; job = job->next) {
		for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
			struct ll_job_card *card = job->claims->cards[i];
			ll_card_job_set_weight(card->share, weight_of(server, card));
			is_needed |= job->department_tenant[0] && card->claims;
		}
	}
	return is_needed;
}
