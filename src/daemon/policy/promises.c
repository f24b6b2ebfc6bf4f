#include "daemon/policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "daemon/residency/residency.h"

enum { MIB_SHIFT = 20, TEXT_SIZE = 2 * LL_REASON_SIZE };

/* Returns the memory that is promised to other jobs on the card. A job whose processes have ended does not count, even
 * if its monitor has not reported the end yet. */
static uint64_t promised_to_others(const struct ll_server *server, const struct ll_job *job, const char *uuid)
{
	uint64_t bytes = 0;
	for (const struct ll_job *other = server->books.jobs; other; other = other->next) {
		uint64_t request = other->facts.limits.request_bytes;
		if (request && other != job && ll_job_card_find(other, uuid) && !ll_job_has_tree_ended(other))
			bytes = request < UINT64_MAX - bytes ? bytes + request : UINT64_MAX;
	}
	return bytes;
}

/* Returns what the card can promise, as the other users who were promised memory reported it. So a user's report cannot
 * take what another user was promised. 0: no other user was promised anything. */
static uint64_t promisable_to_others(const struct ll_server *server, const struct ll_job *job, const char *uuid)
{
	uint64_t least = 0;
	for (const struct ll_job *other = server->books.jobs; other; other = other->next) {
		const struct ll_job_card *card = other->facts.uid != job->facts.uid && other->facts.limits.request_bytes
						     ? ll_job_card_find(other, uuid)
						     : NULL;
		uint64_t bytes = card ? other->pages.orders->promisable_bytes[card->index] : 0;
		if (bytes && (!least || bytes < least) && !ll_job_has_tree_ended(other))
			least = bytes;
	}
	return least;
}

/* promisable: what the job's user says that the card can promise; 0: any sum. */
static int check_promise(const struct ll_server *server, const struct ll_job *job, const char *uuid, uint64_t request,
			 uint64_t promisable, char ret_reason[LL_REASON_SIZE])
{
	uint64_t others = promised_to_others(server, job, uuid), bound = promisable_to_others(server, job, uuid);
	if (bound && (!promisable || bound < promisable))
		promisable = bound;
	if (!request || !promisable || (request <= promisable && others <= promisable - request))
		return 0;
	uint64_t left = others < promisable ? promisable - others : 0;
	char text[TEXT_SIZE];
	snprintf(text, sizeof text,
		 "%" PRIu64 " MiB cannot be promised: of the card's %" PRIu64 " MiB other jobs are promised %" PRIu64
		 ", and %" PRIu64 " are left",
		 request >> MIB_SHIFT, promisable >> MIB_SHIFT, others >> MIB_SHIFT, left >> MIB_SHIFT);
	ll_message_text_set(ret_reason, LL_REASON_SIZE, text);
	return -EDQUOT;
}

int ll_promises_bind(struct ll_server *server, struct ll_job *job, const struct ll_message_bind *bind,
		     char ret_reason[LL_REASON_SIZE])
{
	struct ll_job_card *card;
	int rc =
	    check_promise(server, job, bind->uuid, job->facts.limits.request_bytes, bind->promisable_bytes, ret_reason);
	if (rc)
		return rc;
	rc = ll_job_card_get(server, job, bind->uuid, "", &card);
	if (rc) {
		snprintf(ret_reason, LL_REASON_SIZE, "the job cannot have this card: %s", strerror(-rc));
		return rc;
	}
	struct ll_orders *orders = job->pages.orders;
	atomic_store(&orders->promisable_bytes[card->index], bind->promisable_bytes);
	atomic_store(&orders->cards[card->index].usable_bytes, bind->usable_bytes);
	return 0;
}

/* Checks each of the job's cards. overcommits: only what other users were promised counts. */
static int check_all(const struct ll_server *server, const struct ll_job *job, uint64_t request, bool overcommits,
		     char ret_reason[LL_REASON_SIZE])
{
	const struct ll_job_claims *claims = job->claims;
	int rc = 0;
	for (unsigned i = 0; i < claims->card_count && !rc; i++)
		rc = check_promise(server, job, claims->cards[i]->uuid, request,
				   overcommits ? 0 : job->pages.orders->promisable_bytes[i], ret_reason);
	return rc;
}

void ll_promises_merge(struct ll_limits *limits, const struct ll_message_set *set)
{
	if (set->fields & LL_SET_MEMORY)
		limits->memory_bytes = set->limits.memory_bytes;
	if (set->fields & LL_SET_REQUEST)
		limits->request_bytes = set->limits.request_bytes;
	if (set->fields & LL_SET_COMPUTE)
		limits->compute_permille = set->limits.compute_permille;
	if (set->fields & LL_SET_WEIGHT)
		limits->weight_permille = set->limits.weight_permille;
	if (set->fields & LL_SET_PRIORITY)
		limits->priority = set->limits.priority;
	if (set->fields & LL_SET_SHARING)
		limits->sharing = set->limits.sharing;
	if (set->fields & LL_SET_SLOWDOWN)
		limits->slowdown_permille = set->limits.slowdown_permille;
}

void ll_promises_apply(struct ll_server *server, struct ll_job *job)
{
	struct ll_job_claims *claims = job->claims;
	ll_pages_write_limits(&job->pages, &job->facts.limits);
	ll_job_group_limit(server, job);
	for (unsigned i = 0; i < claims->card_count; i++) {
		ll_card_job_set_limits(claims->cards[i]->share, &job->facts.limits);
		ll_memory_settle(server, claims->cards[i]);
	}
}

int ll_promises_set(struct ll_server *server, struct ll_job *job, const struct ll_message_set *set,
		    char ret_reason[LL_REASON_SIZE])
{
	struct ll_limits limits = job->facts.limits;
	ll_promises_merge(&limits, set);
	bool overcommits = set->fields & LL_SET_OVERCOMMIT;
	int rc = 0;
	if (limits.memory_bytes && limits.request_bytes > limits.memory_bytes) {
		ll_message_text_set(ret_reason, LL_REASON_SIZE, "the request would be more than the limit of memory");
		return -EINVAL;
	}
	if (set->fields & LL_SET_REQUEST)
		rc = check_all(server, job, limits.request_bytes, overcommits, ret_reason);
	if (rc)
		return rc;
	job->facts.limits = limits;
	job->said |= set->fields;
	ll_promises_apply(server, job);
	return 0;
}

void ll_promises_check_brought(struct ll_server *server, struct ll_job *job)
{
	char reason[LL_REASON_SIZE];
	const struct ll_message_set none = {.fields = LL_SET_REQUEST};
	if (check_all(server, job, job->facts.limits.request_bytes, true, reason))
		ll_promises_set(server, job, &none, reason);
}
