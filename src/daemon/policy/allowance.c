#include "daemon/policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "config/keys.h"
#include "protocol/message.h"

#define GIB ((double)(UINT64_C(1) << 30))

static const enum ll_config_class classes[] = {[LL_LIMIT_CLASS_NORMAL] = LL_CONFIG_NORMAL,
					       [LL_LIMIT_CLASS_LOW] = LL_CONFIG_LOW,
					       [LL_LIMIT_CLASS_HIGH] = LL_CONFIG_HIGH};
enum { CLASSES = sizeof classes / sizeof *classes };

enum ll_config_class ll_allowance_class(uint32_t limit_class)
{
	return limit_class < CLASSES ? classes[limit_class] : LL_CONFIG_NORMAL;
}

bool ll_allowance_has_class(const struct ll_config_tenant *tenant, enum ll_config_class class)
{
	for (size_t i = 0; i < tenant->classes.count; i++) {
		if (tenant->classes.items[i] == (int)class)
			return true;
	}
	return false;
}

const struct ll_config_part *ll_allowance_part(const struct ll_config_parts *parts, const char *group)
{
	for (size_t i = 0; i < parts->count; i++) {
		if (strcmp(parts->items[i].of, group) == 0)
			return &parts->items[i];
	}
	return NULL;
}

/* ---- what a job does not say ---- */

static uint64_t left_of(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

void ll_allowance_complete(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
			   const struct ll_job_sum *user, uint64_t said, struct ll_limits *limits)
{
	const struct ll_config_defaults *defaults = &policy->defaults;
	const struct ll_config_each_user *each = &tenant->each_user;
	bool has_compute = (said & LL_SET_COMPUTE) || limits->space_permille;
	if (!(said & LL_SET_MEMORY) && !limits->memory_bytes) {
		if (defaults->memory_bytes != LL_CONFIG_NONE)
			limits->memory_bytes = defaults->memory_bytes;
		else if (each->memory_bytes != LL_CONFIG_NONE)
			limits->memory_bytes = left_of(each->memory_bytes, user->memory_bytes);
		if (limits->memory_bytes && limits->memory_bytes < limits->request_bytes)
			limits->memory_bytes = limits->request_bytes;
	}
	if (!has_compute && !limits->compute_permille) {
		uint64_t left = left_of(each->compute_permille, user->compute_permille);
		if (defaults->compute_permille != LL_CONFIG_NONE)
			limits->compute_permille = (uint32_t)defaults->compute_permille;
		else if (each->compute_permille != LL_CONFIG_NONE)
			limits->compute_permille = left < 1000 ? (uint32_t)left : 1000;
	}
	if (!(said & LL_SET_PRIORITY) && limits->priority == LL_LIMIT_CLASS_NORMAL) {
		static const uint32_t order[] = {LL_LIMIT_CLASS_NORMAL, LL_LIMIT_CLASS_LOW, LL_LIMIT_CLASS_HIGH};
		enum ll_config_class class = (enum ll_config_class)defaults->class;
		for (size_t i = 0; !ll_allowance_has_class(tenant, class) && i < CLASSES; i++)
			class = ll_allowance_has_class(tenant, classes[order[i]]) ? classes[order[i]] : class;
		for (uint32_t i = 0; i < CLASSES; i++)
			limits->priority = classes[i] == class ? i : limits->priority;
	}
	if (!(said & LL_SAID_EVICTABLE) && defaults->is_evictable)
		limits->flags |= LL_LIMIT_EVICTABLE;
}

/* ---- checks ---- */

static int refuse_memory(const char *whose, uint64_t asked, uint64_t allowed, uint64_t used, struct ll_err *err)
{
	return ll_err_set(err, -EACCES, "memory: %.4g GiB asked for, %.4g GiB allowed for %s, %.4g GiB in use",
			  (double)asked / GIB, (double)allowed / GIB, whose, (double)used / GIB);
}

static int refuse_compute(const char *whose, uint64_t asked, uint64_t allowed, uint64_t used, struct ll_err *err)
{
	return ll_err_set(err, -EACCES, "compute: %g%% asked for, %g%% allowed for %s, %g%% in use", (double)asked / 10,
			  (double)allowed / 10, whose, (double)used / 10);
}

static int refuse_cards(const char *whose, uint64_t asked, uint64_t allowed, uint64_t used, struct ll_err *err)
{
	return ll_err_set(err, -EACCES, "cards: %" PRIu64 " asked for, %" PRIu64 " allowed for %s, %" PRIu64 " in use",
			  asked, allowed, whose, used);
}

static bool is_above(uint64_t asked, uint64_t used, uint64_t allowed)
{
	return allowed != LL_CONFIG_NONE && (asked > allowed || used > allowed - asked);
}

static uint64_t multiply_amount(uint64_t amount, uint64_t count)
{
	uint64_t product;
	return __builtin_mul_overflow(amount, count, &product) ? UINT64_MAX : product;
}

int ll_allowance_check_class(const struct ll_config_tenant *tenant, uint32_t priority, struct ll_err *err)
{
	enum ll_config_class class = ll_allowance_class(priority);
	char allowed[64] = "";
	if (ll_allowance_has_class(tenant, class))
		return 0;
	for (size_t i = 0; i < tenant->classes.count; i++) {
		size_t used = strlen(allowed);
		snprintf(allowed + used, sizeof allowed - used, "%s%s", used ? ", " : "",
			 ll_config_classes[tenant->classes.items[i]]);
	}
	return ll_err_set(err, -EACCES, "class: %s asked for, tenant %s may use %s", ll_config_classes[class],
			  tenant->name, allowed[0] ? allowed : "none");
}

/* Without a limit of its own a job may take all, so it is not within a limit. */
static int refuse_unlimited(const char *what, const char *whose, struct ll_err *err)
{
	return ll_err_set(err, -EACCES, "%s: no limit asked for, and %s has one", what, whose);
}

int ll_allowance_check(const struct ll_config_tenant *tenant, const struct ll_job_sum *user, uint64_t cards,
		       const struct ll_limits *limits, struct ll_err *err)
{
	static const char whose[] = "each user";
	const struct ll_config_each_user *each = &tenant->each_user;
	uint64_t memory = multiply_amount(limits->memory_bytes, cards),
		 compute = multiply_amount(limits->compute_permille, cards);
	int rc = ll_allowance_check_class(tenant, limits->priority, err);
	if (rc)
		return rc;
	if (is_above(1, user->jobs, each->running))
		return ll_err_set(err, -EACCES, "running: %" PRIu64 " jobs allowed for %s, %" PRIu64 " run",
				  each->running, whose, user->jobs);
	if (each->memory_bytes != LL_CONFIG_NONE && !memory && user->memory_bytes < each->memory_bytes)
		return refuse_unlimited("memory", whose, err);
	if (is_above(memory ? memory : 1, user->memory_bytes, each->memory_bytes))
		return refuse_memory(whose, memory, each->memory_bytes, user->memory_bytes, err);
	if (each->compute_permille != LL_CONFIG_NONE && !compute && !limits->space_permille &&
	    user->compute_permille < each->compute_permille)
		return refuse_unlimited("compute", whose, err);
	compute = compute ? compute : multiply_amount(limits->space_permille, cards);
	if (is_above(compute ? compute : 1, user->compute_permille, each->compute_permille))
		return refuse_compute(whose, compute, each->compute_permille, user->compute_permille, err);
	return 0;
}

/* whose: "tenant NAME in group NAME", for the sentence. */
static int check_part(const struct ll_config_part *part, const struct ll_allowance_group *ask,
		      const struct ll_job_sum *used, const char *whose, struct ll_err *err)
{
	const struct ll_job_sum *job = &ask->job;
	bool gives_memory = ask->group->give == LL_CONFIG_BY_MEMORY;
	if (gives_memory && part->memory_bytes != LL_CONFIG_NONE && !job->memory_bytes)
		return refuse_unlimited("memory", whose, err);
	if (gives_memory && part->compute_permille != LL_CONFIG_NONE && !job->compute_permille)
		return refuse_unlimited("compute", whose, err);
	if (is_above(job->cards, used->cards, part->cards))
		return refuse_cards(whose, job->cards, part->cards, used->cards, err);
	if (is_above(job->memory_bytes, used->memory_bytes, part->memory_bytes))
		return refuse_memory(whose, job->memory_bytes, part->memory_bytes, used->memory_bytes, err);
	if (is_above(job->compute_permille, used->compute_permille, part->compute_permille))
		return refuse_compute(whose, job->compute_permille, part->compute_permille, used->compute_permille,
				      err);
	return 0;
}

int ll_allowance_check_group(const struct ll_config_tenant *tenant, const struct ll_allowance_group *ask,
			     struct ll_err *err)
{
	const struct ll_config_part *limit = ll_allowance_part(&tenant->limit, ask->group->name);
	const struct ll_config_part *guarantee = ll_allowance_part(&tenant->guarantee, ask->group->name);
	const struct ll_config_part none = {.cards = 0, .memory_bytes = 0, .compute_permille = 0};
	char whose[128];
	if (ask->group->give == LL_CONFIG_BY_CARD && is_above(ask->job.cards, ask->user.cards, tenant->each_user.cards))
		return refuse_cards("each user", ask->job.cards, tenant->each_user.cards, ask->user.cards, err);
	snprintf(whose, sizeof whose, "tenant %s in group %s", tenant->name, ask->group->name);
	int rc = limit ? check_part(limit, ask, &ask->tenant, whose, err) : 0;
	uint64_t request = ask->group->give == LL_CONFIG_BY_MEMORY ? ask->job.request_bytes : 0;
	uint64_t promisable = guarantee && guarantee->memory_bytes != LL_CONFIG_NONE ? guarantee->memory_bytes : 0;
	if (!rc && request && is_above(request, ask->tenant.request_bytes, promisable)) {
		snprintf(whose, sizeof whose, "requests of tenant %s in group %s", tenant->name, ask->group->name);
		return refuse_memory(whose, request, promisable, ask->tenant.request_bytes, err);
	}
	if (rc || !ask->is_high)
		return rc;
	snprintf(whose, sizeof whose, "class high of tenant %s in group %s", tenant->name, ask->group->name);
	return check_part(guarantee ? guarantee : &none, ask, &ask->high, whose, err);
}
