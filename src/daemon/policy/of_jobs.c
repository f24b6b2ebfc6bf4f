#include "daemon/policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/core/server.h"
#include "daemon/jobs/jobs.h"
#include "daemon/machine/machine.h"

/* ---- groups of cards ---- */

bool ll_department_find_card(const struct ll_server *server, const char *uuid, struct ll_config_card *ret_card)
{
	const struct ll_machine_card *card = ll_machine_card_find(server, uuid);
	if (card)
		*ret_card = (struct ll_config_card){card->index, card->slice};
	return card;
}

bool ll_department_knows_cards(const struct ll_server *server)
{
	return server->department.find_card && (!server->machine || ll_machine_card_count(server));
}

const struct ll_config_group *ll_department_group(const struct ll_server *server, const char *uuid)
{
	const struct ll_department *department = &server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	struct ll_config_card card;
	if (!policy || !department->find_card || !department->find_card(server, uuid, &card))
		return NULL;
	for (size_t i = 0; i < policy->cards.count; i++) {
		const struct ll_config_cards *cards = &policy->cards.items[i].cards;
		for (size_t j = 0; j < cards->count; j++) {
			if (cards->items[j].index == card.index && cards->items[j].slice == card.slice)
				return &policy->cards.items[i];
		}
	}
	return NULL;
}

/* ---- sums ---- */

/* How many of its cards are given by memory, and whole. A job that has no card yet will have one. */
static void count_cards(const struct ll_server *server, const struct ll_job *job, const struct ll_config_group *group,
			uint64_t *ret_parts, uint64_t *ret_whole)
{
	*ret_parts = *ret_whole = 0;
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		const struct ll_config_group *its = ll_department_group(server, job->claims->cards[i]->uuid);
		if (group && its != group)
			continue;
		*(its && its->give == LL_CONFIG_BY_CARD ? ret_whole : ret_parts) += 1;
	}
	bool has_none = !job->claims || !job->claims->card_count;
	*ret_parts += has_none && !group;
}

static uint64_t compute_of(const struct ll_limits *limits)
{
	return limits->compute_permille ? limits->compute_permille : limits->space_permille;
}

static uint64_t add_product(uint64_t sum, uint64_t amount, uint64_t count)
{
	uint64_t product;
	if (__builtin_mul_overflow(amount, count, &product) || __builtin_add_overflow(sum, product, &sum))
		return UINT64_MAX;
	return sum;
}

void ll_department_sum(const struct ll_server *server, const struct ll_department_scope *scope,
		       struct ll_job_sum *ret_use)
{
	*ret_use = (struct ll_job_sum){0};
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		uint64_t parts, whole;
		bool is_in_scope = job != scope->except && strcmp(job->department_tenant, scope->tenant) == 0 &&
				   (!scope->is_of_user || job->facts.uid == scope->uid) &&
				   (!scope->is_high || job->facts.limits.priority == LL_LIMIT_CLASS_HIGH);
		if (!is_in_scope || ll_job_has_tree_ended(job))
			continue;
		count_cards(server, job, scope->group, &parts, &whole);
		ret_use->jobs++;
		ret_use->cards += whole;
		ret_use->request_bytes = add_product(ret_use->request_bytes, job->facts.limits.request_bytes, parts);
		ret_use->memory_bytes = add_product(ret_use->memory_bytes, job->facts.limits.memory_bytes, parts);
		ret_use->compute_permille =
		    add_product(ret_use->compute_permille, compute_of(&job->facts.limits), parts);
	}
}

/* Of the user's jobs in the tenant. except: NULL: none. */
static struct ll_job_sum sum_user(const struct ll_server *server, const char *tenant, uint32_t uid,
				  const struct ll_job *except)
{
	struct ll_job_sum sum;
	ll_department_sum(
	    server, &(struct ll_department_scope){.tenant = tenant, .is_of_user = true, .uid = uid, .except = except},
	    &sum);
	return sum;
}

static struct ll_job_sum sum_others(const struct ll_server *server, const struct ll_job *job)
{
	return sum_user(server, job->department_tenant, job->facts.uid, job);
}

/* Returns the job's tenant; NULL: nothing limits the job. A tenant that the configuration no longer has limits nothing:
 * its jobs go on. */
static const struct ll_config_tenant *tenant_of(const struct ll_server *server, const struct ll_job *job)
{
	return job->department_tenant[0] ? ll_department_find(&server->department, job->department_tenant) : NULL;
}

/* ---- a job registers ---- */

static int admit_new(const struct ll_server *server, struct ll_message_job *message, char ret_tenant[LL_NAME_SIZE],
		     struct ll_err *err)
{
	const struct ll_department *department = &server->department;
	const struct ll_config_policy *policy = ll_department_policy(department);
	struct ll_job_facts *facts = &message->job;
	struct ll_limits limits = facts->limits;
	struct ll_err why = {0};
	const struct ll_config_tenant *tenant =
	    ll_department_tenant(department, facts->uid, facts->flags & LL_JOB_NAMED ? facts->tenant : NULL, &why);
	if (!tenant)
		return ll_err_set(err, why.code, "%s", why.text);
	struct ll_job_sum user = sum_user(server, tenant->name, facts->uid, NULL);
	ll_allowance_complete(policy, tenant, &user, message->said, &limits);
	int rc = ll_allowance_check(tenant, &user, 1, &limits, err);
	if (!rc)
		rc = ll_spending_check(server, tenant, message->project[0], err);
	if (rc)
		return ll_err_wrap(err, "tenant %s", tenant->name);
	facts->limits = limits;
	ll_message_text_set(ret_tenant, LL_NAME_SIZE, tenant->name);
	return 0;
}

#define RETURN_NS (10 * LL_NS_PER_S)

bool ll_department_was_admitted(const struct ll_server *server, const int *page_fds)
{
	struct stat st;
	return page_fds && ll_now_ns() - server->born_ns < RETURN_NS && fstat(page_fds[1], &st) == 0 &&
	       st.st_uid == geteuid();
}

int ll_department_admit(const struct ll_server *server, struct ll_message_job *message, const int *page_fds,
			char ret_tenant[LL_NAME_SIZE], struct ll_err *err)
{
	const struct ll_department *department = &server->department;
	const struct ll_job *known = ll_books_find_id(&server->books, message->job.token[0]);
	bool was_admitted = ll_department_was_admitted(server, page_fds);
	bool is_taken = !known && !was_admitted && ll_takeover_is_due(server, &message->job, page_fds);
	bool is_new = !known && !was_admitted && !is_taken;
	ll_message_text_set(ret_tenant, LL_NAME_SIZE, known ? known->department_tenant : "");
	if (!ll_department_policy(department) || ret_tenant[0])
		return 0;
	if (is_new)
		return admit_new(server, message, ret_tenant, err);
	const char *wanted = message->job.flags & LL_JOB_NAMED ? message->job.tenant : NULL;
	const struct ll_config_tenant *tenant = ll_department_tenant(department, message->job.uid, wanted, NULL);
	if (!tenant && is_taken) /* a user's own loadlined takes any name */
		tenant = ll_department_tenant(department, message->job.uid, NULL, NULL);
	ll_message_text_set(ret_tenant, LL_NAME_SIZE, tenant ? tenant->name : "");
	return 0;
}

/* ---- a job gets a card, or other limits ---- */

/* The job with these limits, on its cards of the group and so many more. */
static int check_group(const struct ll_server *server, const struct ll_job *job, const struct ll_limits *limits,
		       const struct ll_config_group *group, uint64_t more, struct ll_err *err)
{
	const struct ll_config_tenant *tenant = tenant_of(server, job);
	struct ll_allowance_group ask = {
	    .group = group, .user = sum_others(server, job), .is_high = limits->priority == LL_LIMIT_CLASS_HIGH};
	struct ll_department_scope scope = {.tenant = tenant->name, .except = job, .group = group};
	uint64_t parts, whole;

	ll_department_sum(server, &scope, &ask.tenant);
	scope.is_high = true;
	ll_department_sum(server, &scope, &ask.high);
	count_cards(server, job, group, &parts, &whole);
	if (group->give == LL_CONFIG_BY_CARD)
		ask.job.cards = whole + more;
	else
		ask.job = (struct ll_job_sum){.jobs = 1,
					      .memory_bytes = add_product(0, limits->memory_bytes, parts + more),
					      .request_bytes = add_product(0, limits->request_bytes, parts + more),
					      .compute_permille = add_product(0, compute_of(limits), parts + more)};
	return ll_allowance_check_group(tenant, &ask, err);
}

int ll_department_check_card(const struct ll_server *server, const struct ll_job *job, const char *uuid,
			     struct ll_err *err)
{
	const struct ll_config_tenant *tenant = tenant_of(server, job);
	const struct ll_config_group *group = ll_department_group(server, uuid);
	uint64_t parts, whole;
	if (!tenant || ll_job_card_find(job, uuid))
		return 0;
	int rc = group ? check_group(server, job, &job->facts.limits, group, 1, err) : 0;
	if (!rc && (!group || group->give == LL_CONFIG_BY_MEMORY)) {
		bool has_cards = job->claims->card_count;
		count_cards(server, job, NULL, &parts, &whole);
		struct ll_job_sum user = sum_others(server, job);
		rc = ll_allowance_check(tenant, &user, has_cards ? parts + 1 : 1, &job->facts.limits, err);
	}
	return rc ? ll_err_wrap(err, "tenant %s", tenant->name) : 0;
}

bool ll_department_fit_limits(const struct ll_server *server, struct ll_job *job, const char *uuid)
{
	const struct ll_config_group *group = ll_department_group(server, uuid);
	struct ll_limits limits = job->facts.limits;
	if (!job->department_tenant[0] || !group || group->give != LL_CONFIG_BY_CARD)
		return false;
	if (!(job->said & LL_SET_MEMORY))
		limits.memory_bytes = 0;
	if (!(job->said & LL_SET_COMPUTE))
		limits.compute_permille = 0;
	bool has_changed = limits.memory_bytes != job->facts.limits.memory_bytes ||
			   limits.compute_permille != job->facts.limits.compute_permille;
	job->facts.limits = limits;
	return has_changed;
}

int ll_department_check_limits(const struct ll_server *server, const struct ll_job *job, const struct ll_limits *limits,
			       struct ll_err *err)
{
	const struct ll_config_tenant *tenant = tenant_of(server, job);
	const struct ll_limits *now = &job->facts.limits;
	/* 0 is no limit: the most, where 1 less is the least. */
	bool asks_more = limits->memory_bytes - 1 > now->memory_bytes - 1 ||
			 compute_of(limits) - 1 > compute_of(now) - 1 || limits->request_bytes > now->request_bytes;
	bool is_other_class = limits->priority != now->priority;
	uint64_t parts, whole;
	if (!tenant || (!asks_more && !is_other_class))
		return 0;
	int rc = is_other_class ? ll_allowance_check_class(tenant, limits->priority, err) : 0;
	struct ll_job_sum user = sum_others(server, job);
	count_cards(server, job, NULL, &parts, &whole);
	if (!rc && asks_more && parts)
		rc = ll_allowance_check(tenant, &user, parts, limits, err);
	/* The same checks as for a card, in each group in which the job has cards. */
	bool has_groups = asks_more || limits->priority == LL_LIMIT_CLASS_HIGH;
	for (unsigned i = 0; !rc && has_groups && i < job->claims->card_count; i++) {
		const struct ll_config_group *group = ll_department_group(server, job->claims->cards[i]->uuid);
		rc = group ? check_group(server, job, limits, group, 0, err) : 0;
	}
	return rc ? ll_err_wrap(err, "tenant %s", tenant->name) : 0;
}

/* ---- another configuration ---- */

static bool is_above(uint64_t used, uint64_t limit)
{
	return limit != LL_CONFIG_NONE && used > limit;
}

static void note_user(const struct ll_server *server, const struct ll_job *job)
{
	const struct ll_config_tenant *tenant = tenant_of(server, job);
	if (job->department_tenant[0] && !tenant) {
		ll_warn("job %" PRIu64 " of user %" PRIu32
			": the configuration has no tenant %s any more; the job goes on",
			job->number, job->facts.uid, job->department_tenant);
		return;
	}
	if (!tenant)
		return;
	const struct ll_config_each_user *each = &tenant->each_user;
	bool is_last = true; /* of its user's jobs: one line for each user */
	for (const struct ll_job *later = job->next; later; later = later->next)
		is_last &=
		    later->facts.uid != job->facts.uid || strcmp(later->department_tenant, job->department_tenant) != 0;
	struct ll_job_sum user = sum_user(server, tenant->name, job->facts.uid, NULL);
	if (is_last && (is_above(user.jobs, each->running) || is_above(user.memory_bytes, each->memory_bytes) ||
			is_above(user.compute_permille, each->compute_permille) || is_above(user.cards, each->cards)))
		ll_warn("user %" PRIu32 " has more than tenant %s now allows each user; no job is ended",
			job->facts.uid, tenant->name);
}

void ll_department_note_change(struct ll_server *server)
{
	for (const struct ll_job *job = server->books.jobs; job; job = job->next)
		note_user(server, job);
	ll_weights_settle(server);
}

/* ---- weights ---- */

/* A training job that reads data or saves its state launches nothing for some seconds. */
#define LATELY_NS (30 * LL_NS_PER_S)

enum { WEIGHT_USUAL = 1000, WEIGHT_MAX = 100000 };

static uint64_t own_weight(const struct ll_job *job)
{
	return job->facts.limits.weight_permille ? job->facts.limits.weight_permille : WEIGHT_USUAL;
}

/* Sums the own weights of the tenant's jobs that want the card, this one included. */
static uint64_t sum_of_tenant(const struct ll_server *server, const struct ll_job_card *card)
{
	uint64_t sum = 0;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		if (strcmp(job->department_tenant, card->job->department_tenant) != 0 || !job->claims)
			continue;
		const struct ll_job_card *other = ll_job_card_find(job, card->uuid);
		bool is_active = other == card;
		for (const struct ll_job_claim *at = other ? other->claims : NULL; at && !is_active; at = at->next)
			is_active = ll_card_claim_has_wanted(at->share, LATELY_NS);
		sum += is_active ? own_weight(job) : 0;
	}
	return sum;
}

static uint32_t weight_of(const struct ll_server *server, const struct ll_job_card *card)
{
	const struct ll_job *job = card->job;
	const struct ll_config_tenant *tenant = tenant_of(server, job);
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
